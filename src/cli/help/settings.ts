/** The help for settings: all of them by topic, one topic, or one setting. */
import { formatSettings, listSettings, type SettingTable, suggestion, variableOf, variables } from '#config';
import { groupByTopic, settingTable } from '#server/product';

const topics = groupByTopic(settingTable);

/** What can follow `frontdesk help settings`. */
export const settingSubjects: readonly string[] = [...topics.keys(), ...variables(settingTable).map(([name]) => name)];

/** Lists all settings by topic. */
export function settingsHelp(): string {
  const title =
    'Settings (environment variables, or lines of settings.env in CONFIG_DIR; commas separate items) by topic.\n' +
    'To list those of one topic, or to describe one: frontdesk help settings log, frontdesk help settings PORT';
  const width = Math.max(...variables(settingTable).map(([variable]) => variable.length));
  const groups = Array.from(topics, ([topic, table]) => `${topic}:\n${formatSettings(table, width)}`);
  return [title, ...groups].join('\n\n');
}

/**
 * Describes a topic or a setting, which can be written as a variable or as an option of a program, or lists the settings
 * in whose names or descriptions another word occurs. Throws a user-facing Error if there are none.
 */
export function helpOnSetting(subject: string): string {
  const table = topics.get(subject.toLowerCase());
  if (table !== undefined) return `Settings about ${subject.toLowerCase()}:\n${formatSettings(table)}`;
  const variable = settingSubjects.includes(subject.toUpperCase()) ? subject.toUpperCase() : variableOf(subject);
  const row = listSettings(settingTable).find((one) => one.variable === variable);
  if (row !== undefined) return describe(row);
  const about = settingsAbout(subject.toLowerCase());
  if (Object.keys(about).length > 0) return `Settings with ${subject.toLowerCase()}:\n${formatSettings(about)}`;
  const meant = suggestion(variable, settingSubjects) ?? suggestion(subject, settingSubjects);
  const hint = meant === undefined ? `the topics are ${[...topics.keys()].join(', ')}` : `did you mean ${meant}?`;
  throw new Error(`there is no setting or topic of that name: ${hint}`);
}

/** The settings that contain the word, in lower case, in their names or descriptions. */
function settingsAbout(word: string): SettingTable {
  const contains = ([name, { description }]: [string, { readonly description: string }]) =>
    `${variableOf(name)} ${description}`
      .toLowerCase()
      .split(/[^a-z\d]+/)
      .some((one) => one === word || one === `${word}s`);
  return Object.fromEntries(Object.entries(settingTable).filter(contains));
}

function describe({ variable, default: value, expects, description }: ReturnType<typeof listSettings>[number]): string {
  const [topic = ''] = Array.from(topics).find(([, table]) => optionOf(variable) in table) ?? [];
  return `${variable}  ${description}

  value    ${expects}
  default  ${value === '' ? 'none' : value}
  option   ${optionOf(variable)} of createFrontdesk
  topic    ${topic}`;
}

function optionOf(variable: string): string {
  return variables(settingTable).find(([name]) => name === variable)?.[1] ?? '';
}
