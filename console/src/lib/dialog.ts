/** A Svelte action: the dialog is shown above the page as soon as it is there. */
export function modal(dialog: HTMLDialogElement) {
  dialog.showModal();
}
