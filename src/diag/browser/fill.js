/** Puts figures into the cells of a row, each by its name. */

/**
 * @param {Element} row
 * @param {import('./figures.js').Figures} figures
 */
export function fillRow(row, figures) {
  for (const cell of row.querySelectorAll('[data-figure]')) {
    const figure = figures[/** @type {HTMLElement | SVGElement} */ (cell).dataset.figure ?? ''];
    if (figure !== undefined) fillCell(cell, figure);
  }
}

/** Nothing is written that is there already: what selects or reads a text keeps it. @param {Node} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * @param {Element} cell
 * @param {import('./figures.js').Figure} figure
 */
function fillCell(cell, { text, state, href }) {
  if (state !== undefined) setAttribute(cell, 'data-state', state);
  if (href !== undefined) setAttribute(cell, 'href', href);
  const name = attributeOf(cell);
  if (name === undefined) setText(cell, text);
  else setAttribute(cell, name, text);
}

/** Where a cell that is no text has its figure. @param {Element} cell */
function attributeOf(cell) {
  if (cell instanceof SVGPolygonElement) return 'points';
  if (cell instanceof SVGRectElement) return 'width';
  if (cell instanceof SVGSVGElement) return 'aria-label';
  return cell instanceof HTMLTimeElement ? 'datetime' : undefined;
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {string} value empty for none, of a link
 */
function setAttribute(element, name, value) {
  if (name === 'href' && value === '') element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
