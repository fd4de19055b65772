/** Throws on import when Node is too old. Every entry point imports this file first. */
export const oldestNode = '24.16';

/** Returns the message for the user, or undefined when Node is recent enough. `version` is `process.versions.node`. */
export function nodeVersionError(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldestNode.split('.').map(Number);
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return undefined;
  const fault = `frontdesk needs Node.js ${oldestNode} or newer; this is v${version}`;
  const remedy = `In your project, run npm install node@${oldestMajor} once`;
  return `${fault}. ${remedy}, and start programs with npx, which uses it: npx frontdesk serve, npx node app.mjs`;
}

const error = nodeVersionError(process.versions.node);
if (error !== undefined) throw new Error(error);
