/** What frontdesk consists of: the modules, the settings and the problems of the gateway and of travel. */
import { gatewaySettings, type SettingOptionsOf, type SettingsOf } from '#config';
import { type ProblemTable, problems } from '#http';
import { travelProblems, travelSettings } from '#travel';

export {
  chooseModules,
  httpModules,
  type ModuleChoice,
  type ModuleName,
  moduleFacts,
  moduleNames,
  usesDemoData,
} from './modules.ts';

/** Every setting, in the order of `frontdesk --help`. */
export const settingTable: typeof gatewaySettings & typeof travelSettings = { ...gatewaySettings, ...travelSettings };

export type Settings = SettingsOf<typeof settingTable>;

export type SettingOptions = SettingOptionsOf<typeof settingTable>;

/** Every problem, in the order of the statuses. */
export const problemTable: ProblemTable = Object.fromEntries(
  [...Object.entries(problems), ...Object.entries(travelProblems.kinds)].toSorted(
    ([, one], [, other]) => one.status - other.status,
  ),
);
