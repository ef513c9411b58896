// Notifications of the system, once a person switched them on, while the page is out of sight.

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
