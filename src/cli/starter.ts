/** A small configuration to start from: one service, one user, and one limit. */
import { join } from 'node:path';
import { parseServiceReference, quote, settingsFile } from '#config';
import { listNames, type NewFile, writeNewFiles } from './new-files.ts';

export interface StarterOptions {
  /** Where requests are sent: a service reference. */
  readonly service: string;
  readonly user: string;
  /** As `hash-password` prints it. */
  readonly passwordHash: string;
}

/**
 * Gives the names of the files that it has written. Rejects with an Error fit for a terminal, and then has written
 * nothing: where any part of a configuration exists already, where there is a link, where writing fails, and
 * where the directory has no name.
 */
export async function writeStarter(directory: string, options: StarterOptions): Promise<readonly string[]> {
  requireService(options.service);
  // A variable of a shell that is not set. An empty CONFIG_DIR is the default, and would not lead there.
  if (directory === '') throw new Error('"" is no directory to write to: write . for the one that you are in');
  const there = (await listNames(directory, ['services', 'ratelimit'])).filter((name) => isRead.test(name));
  if (there.length > 0) {
    const files = there.map((name) => join(directory, name)).join(', ');
    throw new Error(
      `there is a configuration already, and nothing was written: ${files}. Name another directory: frontdesk init ./other`,
    );
  }
  const files = starterFiles(options);
  await writeNewFiles(directory, files);
  return files.map(({ name }) => join(directory, name));
}

/** The names that a configuration directory is read for. */
const isRead = /^(?:(?:services|ratelimit)[\\/].*\.ya?ml|(?:users|demo)\.yaml|settings\.env)$/;

function requireService(service: string): void {
  const reference = parseServiceReference(service);
  if (reference !== undefined && reference.scheme !== 'grpc' && reference.path === undefined) return;
  throw new Error(`${quote(service)} is no service to send requests to: write it as http://127.0.0.1:3000`);
}

function starterFiles({ service, user, passwordHash }: StarterOptions): readonly NewFile[] {
  return [
    { name: 'services/app.yaml', text: servicesYaml(service), isSecret: false },
    { name: 'ratelimit/gateway.yaml', text: limitsYaml, isSecret: false },
    { name: 'users.yaml', text: usersYaml(user, passwordHash), isSecret: true },
    { name: settingsFile, text: settingsText, isSecret: false },
  ];
}

function servicesYaml(service: string): string {
  return `# What is sent where, who is asked who is calling, and who counts. Each record is a document of this file; more of
# them may stand here or in other files of this directory. \`frontdesk check\` lists the routes, or what is wrong.

apiVersion: gateway/v1
kind: Mapping
name: app
# Requests for this path and everything below it go to the service. Of several mappings the longest prefix wins, so
# that a second one with the prefix /api can lead elsewhere.
prefix: /
service: ${JSON.stringify(service)}
# It has 60 s to begin its answer (timeout_ms), and a body of any size may pause for 60 s (idle_timeout_ms).
# By what requests are counted: here by the user. The limit itself is in ../ratelimit/gateway.yaml.
labels:
  gateway:
    - by_user:
        - user:
            header: X-Travel-User
            omit_if_not_present: true
---
apiVersion: gateway/v1
kind: AuthService
name: auth
# "auth" is the one of this process: it asks for a name and a password of ../users.yaml. Without them the answer is 401.
auth_service: auth
proto: http
# The service gets the user's name in this header; what a client sends under it is taken away.
allowed_authorization_headers: [X-Travel-User]
# The service does not get the password.
remove_authorization: true
---
apiVersion: gateway/v1
kind: RateLimitService
name: ratelimit
# "ratelimit" is the one of this process, too.
service: ratelimit
`;
}

const limitsYaml = `# How often: limits for the labels of the domain "gateway", in the format of envoyproxy/ratelimit.
domain: gateway
descriptors:
  # No value: every user has a counter of his own.
  - key: user
    rate_limit:
      unit: minute
      requests_per_unit: 60
`;

const settingsText = `# Settings for this directory, read at the start; variables of the process go before them. \`frontdesk --help\` lists all.

# Refuses (400) a path that a service may read as one with other authentication, such as /ADMIN or /admin;x where a
# mapping guards /admin.
STRICT_PATHS=true
`;

function usersYaml(user: string, passwordHash: string): string {
  return `# Who may call. \`frontdesk users add NAME\` adds a user.
users:
  - name: ${user}
    # Sees the diagnostics (/gateway/v0/diag/), explanations and metrics; leave the line out for other users.
    roles: [admin]
    password_hash: "${passwordHash}"
`;
}
