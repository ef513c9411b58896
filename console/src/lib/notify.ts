// System notifications, if the user allowed them, while the page is hidden.

export function canAsk(): boolean {
  return "Notification" in window && Notification.permission === "default";
}

/** All tabs notify under the same tag, so that one notification is shown. */
export function notify(session: string, title: string, body: string) {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification(title, { body: body.slice(0, 200), tag: session, icon: "/icon.svg" });
  shown.onclick = () => {
    window.focus();
    history.pushState(null, "", `/sessions/${session}`);
    dispatchEvent(new PopStateEvent("popstate"));
  };
}
