/** Throws when imported by a Node that is too old; it comes first wherever frontdesk is loaded. */
export const oldestNode = '24.16';

/** What to tell the user, or undefined when that Node is new enough. `version`: as `process.versions.node`. */
export function nodeVersionError(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldestNode.split('.').map(Number);
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return undefined;
  const what = `frontdesk needs Node.js ${oldestNode} or newer; this is v${version}`;
  return `${what}. \`npm install node@${oldestMajor}\` puts one into a project, where npx finds it.`;
}

const error = nodeVersionError(process.versions.node);
if (error !== undefined) throw new Error(error);
