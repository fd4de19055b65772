/** Makes the document match a description. */
import { nodesIn } from './elements.js';

/** @typedef {import('./elements.js').Description} Description */
/** @typedef {import('./elements.js').Attributes} Attributes */
/** @typedef {import('./elements.js').Content} Content */

/**
 * Makes the children of an element match the content. Changes and moves as little as possible, so that what stays keeps
 * its focus, its selection, and whether a user has opened it.
 * @param {Element} parent
 * @param {Content} content
 */
export function update(parent, content) {
  const rest = [...parent.childNodes];
  const pairs = nodesIn([content]).map((node) => {
    const index = rest.findIndex((child) => matches(node, child));
    return { node, child: rest.splice(index, index < 0 ? 0 : 1)[0] ?? create(node, parent) };
  });
  for (const child of rest) child.remove();
  for (const [index, { node, child }] of pairs.entries()) {
    const current = parent.childNodes[index];
    if (current !== child) parent.insertBefore(child, current ?? null);
    fill(child, node);
  }
}

/**
 * @param {Description} node
 * @param {ChildNode} child
 */
function matches(node, child) {
  if (typeof node === 'string') return child instanceof Text;
  if (!(child instanceof Element) || child.localName !== node.tag) return false;
  return (child.getAttribute('data-key') ?? undefined) === node.attributes['data-key'];
}

/**
 * @param {Description} node
 * @param {Element} parent
 */
function create(node, parent) {
  if (typeof node === 'string') return document.createTextNode(node);
  const element = document.createElementNS(node.tag === 'svg' ? svg : parent.namespaceURI, node.tag);
  if (node.attributes['open'] !== undefined) element.setAttribute('open', '');
  return element;
}

const svg = 'http://www.w3.org/2000/svg';

/**
 * @param {ChildNode} child
 * @param {Description} node
 */
function fill(child, node) {
  if (typeof node === 'string') {
    if (child.textContent !== node) child.textContent = node;
  } else if (child instanceof Element) {
    fillAttributes(child, node.attributes);
    update(child, node.children);
  }
}

/**
 * Leaves `open` alone, because it belongs to the user once the element is there.
 * @param {Element} element
 * @param {Attributes} attributes
 */
function fillAttributes(element, attributes) {
  for (const name of element.getAttributeNames()) {
    if (name !== 'open' && attributes[name] === undefined) element.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(attributes)) {
    const isWritten = name === 'open' || value === undefined || element.getAttribute(name) === value;
    if (!isWritten) element.setAttribute(name, value);
  }
}
