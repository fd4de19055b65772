/** What the package leaves undeclared of itself, as far as it is used. */
declare module 'parse-prometheus-text-format' {
  interface ParsedSample {
    readonly labels?: Readonly<Record<string, string>>;
    readonly value: string;
  }

  interface ParsedFamily {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly metrics: readonly ParsedSample[];
  }

  function parse(text: string): readonly ParsedFamily[];

  // biome-ignore lint/style/noDefaultExport: it is the package's own way.
  export { parse as default };
}
