/**
 * Declares the DOM types that the types of playwright and Connect refer to. Tests run in Node, without the DOM library of TypeScript.
 */
type Node = object;
type HTMLElement = object;
type SVGElement = object;
type HTMLElementTagNameMap = Record<string, HTMLElement>;
type HeadersInit = Headers | Record<string, string> | [string, string][];
