/** Makes the document match a description. */
import { nodesIn } from './elements.js';

/** @typedef {import('./elements.js').Description} Description */
/** @typedef {import('./elements.js').ElementDescription} ElementDescription */
/** @typedef {import('./elements.js').Attributes} Attributes */
/** @typedef {import('./elements.js').Content} Content */
/** A child of an element, and what it shows. @typedef {{ readonly child: ChildNode, readonly node: Description }} Shown */

/**
 * What the children of each element show. Comparing descriptions costs a fraction of reading the document.
 * @type {WeakMap<Element, readonly Shown[]>}
 */
const shownIn = new WeakMap();

/** The latest description of each element that a user can open. @type {WeakMap<Element, ElementDescription>} */
const disclosures = new WeakMap();

/**
 * Makes the children of an element match the content, replacing those that other code has put there. Changes and moves
 * as little as possible, so that what stays keeps its focus, its selection, and whether a user has opened it.
 * @param {Element} parent
 * @param {Content} content
 */
export function update(parent, content) {
  showNodes(parent, nodesIn([content]));
}

/**
 * @param {Element} parent
 * @param {readonly Description[]} nodes
 */
function showNodes(parent, nodes) {
  const shown = shownIn.get(parent) ?? clear(parent);
  const isInPlace = shown.length === nodes.length && shown.every(({ node }, index) => isSame(node, nodes[index]));
  const arranged = isInPlace ? shown : arrange(parent, shown, nodes);
  shownIn.set(
    parent,
    nodes.map((node, index) => fill(arranged[index] ?? create(node, parent), node)),
  );
}

/** @param {Element} parent @returns {readonly Shown[]} */
function clear(parent) {
  parent.replaceChildren();
  return [];
}

/** Whether both describe the same child, possibly with different content. @param {Description} a @param {Description | undefined} b */
function isSame(a, b) {
  if (typeof a === 'string' || typeof b === 'string') return typeof a === typeof b;
  return a.tag === b?.tag && a.attributes['data-key'] === b.attributes['data-key'];
}

/**
 * Removes, creates and moves children until they are in the order of the nodes.
 * @param {Element} parent
 * @param {readonly Shown[]} shown
 * @param {readonly Description[]} nodes
 */
function arrange(parent, shown, nodes) {
  /** @type {Map<string, Shown[]>} */
  const kept = new Map();
  for (const one of shown) {
    const alike = kept.get(identityOf(one.node));
    if (alike === undefined) kept.set(identityOf(one.node), [one]);
    else alike.push(one);
  }
  const arranged = nodes.map((node) => kept.get(identityOf(node))?.shift() ?? create(node, parent));
  for (const { child } of [...kept.values()].flat()) child.remove();
  for (const [index, { child }] of arranged.entries()) {
    const current = parent.childNodes[index];
    if (current !== child) parent.insertBefore(child, current ?? null);
  }
  return arranged;
}

/** The same text for nodes that `isSame`. @param {Description} node */
function identityOf(node) {
  return typeof node === 'string' ? '' : `${node.tag} ${node.attributes['data-key'] ?? ''}`;
}

const svg = 'http://www.w3.org/2000/svg';

/**
 * An element without content, or a text.
 * @param {Description} node
 * @param {Element} parent
 * @returns {Shown}
 */
function create(node, parent) {
  if (typeof node === 'string') return { child: document.createTextNode(node), node };
  const { tag, attributes, body } = node;
  const element = document.createElementNS(tag === 'svg' ? svg : parent.namespaceURI, tag);
  if (attributes['open'] !== undefined) element.setAttribute('open', '');
  if (body !== undefined) element.addEventListener('toggle', () => showDisclosure(element));
  shownIn.set(element, []);
  return { child: element, node: { tag, attributes: {}, children: [] } };
}

/**
 * @param {Shown} shown
 * @param {Description} node
 * @returns {Shown}
 */
function fill({ child, node: before }, node) {
  if (typeof node === 'string') {
    if (before !== node) child.textContent = node;
  } else if (before !== node && typeof before !== 'string' && child instanceof Element) {
    fillAttributes(child, before.attributes, node.attributes);
    if (node.body === undefined) showNodes(child, node.children);
    else {
      disclosures.set(child, node);
      showDisclosure(child);
    }
  }
  return { child, node };
}

/** Shows the body of an element while it is open. @param {Element} element */
function showDisclosure(element) {
  const { children = [], body } = disclosures.get(element) ?? {};
  showNodes(element, element.hasAttribute('open') ? nodesIn([children, body?.()]) : children);
}

/**
 * Leaves `open` alone, because it belongs to the user once the element is there.
 * @param {Element} element
 * @param {Attributes} before
 * @param {Attributes} after
 */
function fillAttributes(element, before, after) {
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const value = after[name];
    if (name === 'open' || value === before[name]) continue;
    if (value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, value);
  }
}
