/** Parts of the page whose rows are others than they were: they are taken from the page as the server makes it now. */

/** What was asked for last, so that a part which another server would make differently is not asked for without end. */
const asked = new Map();

/**
 * Whether anything was exchanged.
 * @param {Readonly<Record<string, string>>} structures as they are now, by part
 */
export async function renewParts(structures) {
  const changed = [...document.querySelectorAll('[data-part]')].filter((part) => isChanged(part, structures));
  if (changed.length === 0) return false;
  for (const [name, structure] of Object.entries(structures)) asked.set(name, structure);
  const page = await fetchPage();
  if (page === undefined) asked.clear();
  else for (const part of changed) exchange(part, page.querySelector(`[data-part="${nameOf(part)}"]`));
  return page !== undefined;
}

/**
 * @param {Element} part
 * @param {Readonly<Record<string, string>>} structures
 */
function isChanged(part, structures) {
  const structure = structures[nameOf(part)];
  return part.getAttribute('data-structure') !== structure && asked.get(nameOf(part)) !== structure;
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
 * What was open stays open, and what had the focus has it.
 * @param {Element} old
 * @param {Element | null} made
 */
function exchange(old, made) {
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
  focusAgain(next, focused);
}

/**
 * @param {Element} part
 * @param {Element | null} focused
 */
function focusAgain(part, focused) {
  const details = focused?.closest('details');
  if (!details) return;
  const again = [...part.querySelectorAll('details')].find(({ id }) => id === details.id);
  again?.querySelector('summary')?.focus({ preventScroll: true });
}

/** @param {Element} part */
function nameOf(part) {
  return part.getAttribute('data-part') ?? '';
}
