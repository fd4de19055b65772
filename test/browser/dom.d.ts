/** The names of a browser that playwright's types speak of. Tests run in Node: they know a page by its locators alone. */
type Node = object;
type HTMLElement = object;
type SVGElement = object;
type HTMLElementTagNameMap = Record<string, HTMLElement>;
