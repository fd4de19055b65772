/** Describes elements as plain data. `update.js` makes the document match the description. */

/**
 * Text, or an element. An attribute that is undefined is absent. An element with a `body` shows it below its children
 * while it is open.
 * @typedef {string | ElementDescription} Description
 */
/** @typedef {{ readonly tag: string, readonly attributes: Attributes, readonly children: readonly Description[], readonly body?: Body }} ElementDescription */
/** @typedef {Readonly<Record<string, string | undefined>>} Attributes */
/** False and undefined are left out. @typedef {Description | false | undefined | readonly Content[]} Content */
/** @typedef {() => Content} Body */

/**
 * Describes an element; the name is hyperscript's. Among siblings of the same tag, `data-key` says which is which after an update.
 * @param {string} tag
 * @param {Attributes} attributes
 * @param {readonly Content[]} content
 * @returns {ElementDescription}
 */
export function h(tag, attributes, ...content) {
  return { tag, attributes, children: nodesIn(content) };
}

/**
 * Describes what a user can open. While it is closed, its body costs nothing: it is neither described nor in the document.
 * @param {Attributes} attributes
 * @param {readonly Content[]} summary
 * @param {Body} body
 * @returns {ElementDescription}
 */
export function disclosure(attributes, summary, body) {
  return { ...h('details', attributes, h('summary', {}, summary)), body };
}

/**
 * The text and elements that the content consists of.
 * @param {readonly Content[]} content
 * @returns {readonly Description[]}
 */
export function nodesIn(content) {
  return content.flatMap((one) => {
    if (one === undefined || one === false || one === '') return [];
    return isList(one) ? nodesIn(one) : [one];
  });
}

/**
 * @param {Content} content
 * @returns {content is readonly Content[]}
 */
function isList(content) {
  return Array.isArray(content);
}
