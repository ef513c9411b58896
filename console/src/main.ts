import { mount } from "svelte";
import App from "./view/App.svelte";
import "./app.css";
import { app } from "./lib/app.svelte";

void app.begin();
mount(App, { target: document.getElementById("app")! });
