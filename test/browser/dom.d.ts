/**
 * Declares the DOM types that playwright's types refer to. Tests run in Node, without the DOM library of TypeScript.
 */
type Node = object;
type HTMLElement = object;
type SVGElement = object;
type HTMLElementTagNameMap = Record<string, HTMLElement>;
