/** Describes elements as plain data. `update.js` makes the document match the description. */

/**
 * Text, or an element. An attribute that is undefined is absent.
 * @typedef {string | { readonly tag: string, readonly attributes: Attributes, readonly children: readonly Description[] }} Description
 */
/** @typedef {Readonly<Record<string, string | undefined>>} Attributes */
/** False and undefined are left out. @typedef {Description | false | undefined | readonly Content[]} Content */

/**
 * Describes an element; the name is hyperscript's. Among siblings of the same tag, `data-key` says which is which after an update.
 * @param {string} tag
 * @param {Attributes} attributes
 * @param {readonly Content[]} content
 * @returns {Description}
 */
export function h(tag, attributes, ...content) {
  return { tag, attributes, children: nodesIn(content) };
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
