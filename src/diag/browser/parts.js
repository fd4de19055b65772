/** Replaces parts of the page whose rows have changed, by those of the page as the server renders it now. */

/** The structures requested last: a part that the server renders differently is not requested again and again. */
const requested = new Map();

/**
 * Returns whether a part was replaced.
 * @param {Readonly<Record<string, string>>} structures as they are now, by part
 */
export async function renewParts(structures) {
  const changed = [...document.querySelectorAll('[data-part]')].filter((part) => isChanged(part, structures));
  if (changed.length === 0) return false;
  for (const [name, structure] of Object.entries(structures)) requested.set(name, structure);
  const page = await fetchPage();
  if (page === undefined) requested.clear();
  else for (const part of changed) replace(part, page.querySelector(`[data-part="${nameOf(part)}"]`));
  return page !== undefined;
}

/**
 * @param {Element} part
 * @param {Readonly<Record<string, string>>} structures
 */
function isChanged(part, structures) {
  const structure = structures[nameOf(part)];
  return part.getAttribute('data-structure') !== structure && requested.get(nameOf(part)) !== structure;
}

async function fetchPage() {
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), 'text/html') : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Keeps open what was open, and the focus.
 * @param {Element} old
 * @param {Element | null} made
 */
function replace(old, made) {
  if (made === null) return;
  const open = [...old.querySelectorAll('details[open]')].map(({ id }) => id);
  const wasClosed = [...old.querySelectorAll('details:not([open])')].map(({ id }) => id);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const next = document.importNode(made, true);
  old.replaceWith(next);
  for (const details of next.querySelectorAll('details')) {
    if (open.includes(details.id)) details.open = true;
    if (wasClosed.includes(details.id)) details.open = false;
  }
  restoreFocus(next, focused);
}

/**
 * @param {Element} part
 * @param {Element | null} focused
 */
function restoreFocus(part, focused) {
  const details = focused?.closest('details');
  if (!details) return;
  const again = [...part.querySelectorAll('details')].find(({ id }) => id === details.id);
  again?.querySelector('summary')?.focus({ preventScroll: true });
}

/** @param {Element} part */
function nameOf(part) {
  return part.getAttribute('data-part') ?? '';
}
