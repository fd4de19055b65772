/** Makes property tests reach the lengths that they name: by itself, fast-check stops at ten elements. */
import fc from 'fast-check';

fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true });
