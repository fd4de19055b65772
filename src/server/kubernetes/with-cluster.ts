/** Puts the records of a cluster together with what the files have: limits, users and demo data. */
import {
  type Acceptance,
  type AcceptedObjects,
  type Configuration,
  type ConfigurationError,
  type ConfigurationRecords,
  fileError,
  hasConfiguration,
  type LoadedConfiguration,
  nameOfObject,
  type Refusal,
} from '#config';
import { type Settings, settingTable } from '#server/product';

/** With the records in a cluster, there may be no limits and no users, and so no directory, unless one was chosen. */
export function filesOf(
  config: string | ConfigurationRecords | undefined,
  { kubernetes, configDir }: Settings,
): string | ConfigurationRecords | undefined {
  const usual = settingTable.configDir.default;
  const isChosen = (config ?? configDir) !== usual;
  return kubernetes && !isChosen && !hasConfiguration(usual) ? { records: [] } : config;
}

/** Without a cluster, returns the configuration of the files. */
export function withCluster(files: LoadedConfiguration, cluster: AcceptedObjects | undefined): LoadedConfiguration {
  if (cluster === undefined) return files;
  return {
    ...files,
    configuration: Object.freeze({ ...files.configuration, ...cluster.records }),
    errors: [...files.errors, ...recordsInFiles(files)],
    notices: [...files.notices, ...cluster.notices],
  };
}

/** An AuthService in a file, or in the data of a program, that nobody reads would leave everything open. */
function recordsInFiles({ files, configuration }: LoadedConfiguration): readonly ConfigurationError[] {
  if (files === undefined) return recordsAsData(configuration);
  const found = files.filter(({ records, addresses }) => records.length + addresses.length > 0);
  return found.map(({ file }) =>
    fileError(
      file,
      'this file has records, but with KUBERNETES they come from the cluster',
      'Apply them to the cluster, for example as resources (frontdesk crds), and remove the file.',
    ),
  );
}

function recordsAsData(configuration: Configuration): readonly ConfigurationError[] {
  const { mappings, authServices, jwtProviders, rateLimitServices, versions } = configuration;
  const [first] = [mappings, authServices, jwtProviders, rateLimitServices, versions].flat();
  if (first === undefined) return [];
  const message = 'the program passes records, but with kubernetes they come from the cluster';
  const remedy = 'Apply them to the cluster, for example as resources (frontdesk crds), and pass none.';
  return [fileError(first.source.file, message, remedy, first.source.line)];
}

/** Adds the refused objects. The records of the cluster count even if the files are refused, and the other way round. */
export function withRefusedObjects(accepted: Acceptance, cluster: AcceptedObjects | undefined): Acceptance {
  if (cluster === undefined) return accepted;
  return {
    configuration: Object.freeze({ ...accepted.configuration, ...cluster.records }),
    refusals: [...accepted.refusals, ...refusedObjects(cluster)],
  };
}

function refusedObjects({ verdicts }: AcceptedObjects): readonly Refusal[] {
  return verdicts.flatMap(({ object, errors, consequence }) =>
    consequence === undefined ? [] : [{ part: 'records', object: nameOfObject(object), consequence, errors }],
  );
}
