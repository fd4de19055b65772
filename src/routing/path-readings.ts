/** Finds everything that a path can mean to a service, because servers decode, cut and strip paths in different orders. */
import { bytesFromText, decodeByte, textFromBytes } from '#foundation';
import { decodeOverlong, dotSegment } from '#http';

/** Something that a server does to a path. Returns a path unchanged if there is nothing to do. */
type Step = (path: string) => string;

/** The end of a script's name, after which PHP-FPM, CGI and WSGI pass on the rest of the path: `/index.php/admin`. */
const script = /\.(?:php\d?|phtml|phar|f?cgi|p[ly]|rb|wsgi|aspx?|ashx|jspx?|do|dll|exe)\//i;
const scriptSegment = new RegExp(`/[^/]+${script.source}`, 'i');

/**
 * A step that fits in several places takes the first one. Repeated, it yields every reading that treats the path in this
 * way up to some place. Beyond a place that is left as it is, no ordinary prefix matches.
 */
const commonSteps: readonly Step[] = [
  decodeLetters,
  (path) => foldCase(decodeOverlong(decodeBytes(path))),
  // IIS decodes `%u0041`, and Windows replaces characters with the ASCII ones that fit best.
  (path) => path.replace(/%u[\da-f]{4}/gi, decodeUnit),
  bestFit,
  // An encoded slash, which some servers leave as it is, and an encoded `%`, which each server of a chain decodes once.
  (path) => path.replace(/%2f/i, '/'),
  (path) => path.replaceAll('%25', '%'),
  // Path parameters: of a segment, of the last one, or with all that follows. Before or after a server decodes.
  (path) => path.replace(/;[^/]*/, ''),
  (path) => path.replace(/%3b[^/]*/i, ''),
  (path) => path.slice(0, path.lastIndexOf('/')) + path.slice(path.lastIndexOf('/')).replace(/;.*/s, ''),
  (path) => path.replace(/;.*/s, ''),
  (path) => path.replace(/%3b.*/is, ''),
  // A decoded `?` or `#` starts the query or the fragment for the next server.
  (path) => path.replace(/\?.*/s, ''),
  (path) => path.replace(/%3f.*/is, ''),
  (path) => path.replace(/#.*/s, ''),
  (path) => path.replace(/%23.*/s, ''),
  // Windows ignores dots and blanks at the end of a segment, and streams such as `::$DATA`. ASP.NET ignores `/(S(1))`.
  (path) => path.replace(/\/ +/g, '/').replace(/(?<![. ])[. ]+(?=\/|$)/g, ''),
  (path) => path.replace(/::?\$[^/]*/, ''),
  (path) => path.replace(/\/\((?:\w\([^()/]*\))+\)(?=\/|$)/, '') || '/',
  // Two slashes are one, or start the name of a host.
  (path) => path.replace(/\/{2,}/, '/'),
  (path) => path.replace(/\/{2,}[^/]*/, '') || '/',
  (path) => path.replace(scriptSegment, '/'),
  (path) => path.replace(/(?<=[^/])\/$/, ''),
];

/** What only some services do to paths, so that their mappings have to list it in `path_readings`. */
const declaredSteps: Readonly<Record<PathReading, Step>> = {
  extension: (path) => path.replace(/\.[^./]+(?=\/?$)/, ''),
  plus: (path) => path.replaceAll('+', ' '),
};

type PathReading = 'extension' | 'plus';

/** None of the common steps changes a path without these, except that it may end with a slash. */
export const severalReadings = new RegExp(`[%;A-Z\\x80-\\xff]|//|[.](?:/|$)|:\\$|/\\(|${script.source}`);

/** Bound the work for a path. More than a client needs: a path with an escaped URL in it has about a hundred readings. */
const readingsMax = 256;
const charactersMax = 65_536;

/**
 * Applies the steps in every order and any number of times, and returns all results, including the path itself. Returns
 * undefined when there are too many, or when one of them has a dot segment.
 */
export type ReadingsOf = (path: string) => ReadonlySet<string> | undefined;

export function createReadings(declared: readonly PathReading[]): ReadingsOf {
  const steps = [...commonSteps, ...declared.map((name) => declaredSteps[name])];
  return function readingsOf(path) {
    const readings = new Set([path]);
    // Most paths have one reading.
    if (declared.length === 0 && !severalReadings.test(path) && !path.endsWith('/')) return readings;
    let characters = 0;
    // The set grows while the loop visits it.
    for (const reading of readings) {
      characters += reading.length;
      if (readings.size > readingsMax || characters > charactersMax || dotSegment.test(reading)) return undefined;
      for (const step of steps) readings.add(step(reading));
    }
    return readings;
  };
}

/** Returns the same text for paths that differ only in the case, the encoding and the accents of letters. */
export function foldLetters(path: string): string {
  return bestFit(decodeLetters(path));
}

/** Decodes everything except `%2F` and `%25`, and ignores case. */
function decodeLetters(path: string): string {
  return foldCase(decodeBytes(path));
}

function decodeBytes(path: string): string {
  return path.replace(/%(?!2f|25)[\da-f]{2}/gi, decodeByte);
}

/**
 * Ignores case as services do after they have decoded UTF-8: the Kelvin sign is then a `k`, the long s an `s`, and an I
 * with a dot an `i`. Drops invisible characters and invalid bytes. `bytes` has one character for each byte, and so has the
 * result.
 */
function foldCase(bytes: string): string {
  if (!isBeyondAscii.test(bytes)) return bytes.toLowerCase();
  const text = textFromBytes(bytes).replace(/[\p{DI}\ufffd]/gu, '');
  return bytesFromText(text.toLowerCase().toUpperCase().toLowerCase().replaceAll('i\u0307', 'i'));
}

/** Replaces full-width characters, letters with accents, and characters that look like slashes. */
function bestFit(bytes: string): string {
  if (!isBeyondAscii.test(bytes)) return bytes;
  const text = textFromBytes(bytes).normalize('NFKD').replace(/\p{M}/gu, '');
  return bytesFromText(text.replace(/[\\\u2044\u2215\u2216]/g, '/'));
}

function decodeUnit(encoded: string): string {
  return bytesFromText(String.fromCharCode(Number.parseInt(encoded.slice(2), 16)));
}

const isBeyondAscii = /[\x80-\xff]/;
