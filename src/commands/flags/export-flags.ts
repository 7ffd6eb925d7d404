// `pennon flags export`: writes the flags of a project, and the cohorts that they use, as a file for another project.

import { listReferencesOfFlag } from '#core/flags/definitions/definition-links.ts'
import { truncateList } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import { toPrintable, toPrintableName } from '#core/printable.ts'
import { isSurveyFlagKey } from '#core/surveys/survey-flags.ts'
import {
  type ApiLists,
  createReferenceNamer,
  encodeFlagFile,
  type FileCohort,
  type FileFlag,
  type FlagFile,
  isNotDeleted,
  listReferencesByName,
} from '#wire/management/flags/flag-file.ts'
import { ClientError, type PrivateApi } from '../client/private-api.ts'
import { type ClientOptions, runClient } from '../client/run-client.ts'
import { suggestFlag } from './find-flag.ts'
import { printLines } from './output.ts'

export interface NamedLists {
  readonly file: FlagFile
  /** Sentences about definitions that are not in the file. */
  readonly notes: readonly string[]
}

/** @param keys the keys of the flags to export with everything they use; empty for all flags. */
export function exportFlags(keys: readonly string[], options: ClientOptions): Promise<void> {
  return runClient(options, 'feature_flag:read, cohort:read and group:read', async api => {
    const { file, notes } = replaceIdsByNames(await fetchDefinitionLists(api), keys)
    printLines(encodeFlagFile(file).trimEnd().split('\n').map(toPrintable))
    for (const formatNote of notes) process.stderr.write(`pennon: ${toPrintableName(formatNote)}\n`)
  })
}

/** All flags (archived flags too), cohorts and group types of the project. @throws ClientError */
export async function fetchDefinitionLists(api: PrivateApi): Promise<ApiLists> {
  return {
    flags: await api.list('/feature_flags/', { archived: 'all' }),
    cohorts: await api.list('/cohorts/'),
    groupTypes: await api.bareList('/groups_types/'),
  }
}

/** @throws ClientError for an unknown key, and for cohorts with the same name. */
export function replaceIdsByNames(lists: ApiLists, keys: readonly string[] = []): NamedLists {
  const naming = createReferenceNamer(lists)
  const isExported = (flag: JsonObject) =>
    isNotDeleted(flag) && flag.has_encrypted_payloads !== true && !isSurveyFlagKey(String(flag.key))
  const kept = new Map(lists.flags.filter(isExported).map(flag => [String(flag.key), flag]))
  const unknown = keys.find(key => !kept.has(key))
  if (unknown !== undefined)
    throw new ClientError(`There is no flag ${unknown} to export. ${suggestFlag(unknown, [...kept.keys()])}`)
  const cohorts = new Map<string, FileCohort>()
  const twice = new Set<string>()
  for (const cohort of lists.cohorts.filter(isNotDeleted).map(naming.cohort)) {
    if (cohorts.has(cohort.name)) twice.add(cohort.name)
    cohorts.set(cohort.name, cohort)
  }

  const flags = new Map<string, FileFlag>()
  const used = new Map<string, FileCohort>()
  const typeNames = new Set<string>()
  const addFlag = (key: string) => {
    const flag = naming.flag(kept.get(key)!)
    flags.set(key, flag)
    addReferences(flag.filters)
  }
  const addReferences = (filters: JsonObject) => {
    for (const { kind, name } of listReferencesByName(filters)) {
      if (typeof name !== 'string') continue
      const cohort = cohorts.get(name)
      if (kind === 'group_type') typeNames.add(name)
      else if (kind === 'flag' && kept.has(name) && !flags.has(name)) addFlag(name)
      else if (kind === 'cohort' && cohort !== undefined && !used.has(name)) {
        used.set(name, cohort)
        addReferences(cohort.filters)
      }
    }
  }
  for (const key of keys.length === 0 ? kept.keys() : keys) if (!flags.has(key)) addFlag(key)
  const clash = [...used.keys()].find(name => twice.has(name))
  if (clash !== undefined)
    throw new ClientError(
      `Several cohorts are named "${clash}", and the file refers to cohorts by name: rename all but one.`,
    )
  const file = { groupTypes: [...typeNames], cohorts: [...used.values()], flags: [...flags.values()] }
  return { file, notes: listOmissionNotes(lists, file, keys.length === 0) }
}

function listOmissionNotes({ flags }: ApiLists, file: FlagFile, isWhole: boolean): string[] {
  const inFile = new Set(file.flags.map(({ key }) => key))
  const listKeys = (is: (flag: JsonObject) => boolean) => flags.filter(is).map(({ key }) => String(key))
  const encrypted = isWhole ? listKeys(flag => isNotDeleted(flag) && flag.has_encrypted_payloads === true) : []
  const surveys = isWhole ? listKeys(flag => isNotDeleted(flag) && isSurveyFlagKey(String(flag.key))) : []
  const listKeysInFile = (is: (flag: JsonObject) => boolean) =>
    listKeys(flag => inFile.has(String(flag.key)) && is(flag))
  const hasAny = (field: string) => (flag: JsonObject) => Array.isArray(flag[field]) && flag[field].length > 0
  const hasExperiment = (flag: JsonObject) =>
    hasAny('experiment_set')(flag) ||
    listReferencesOfFlag(flag.filters ?? null).some(({ kind }) => kind === 'experiment')
  const statics = file.cohorts.filter(cohort => cohort.is_static).map(({ name }) => `"${name}"`)
  return [
    ...formatNote(encrypted, 'omitted, since encrypted payloads cannot be decrypted elsewhere: '),
    ...formatNote(surveys, 'omitted, since surveys create these flags themselves: '),
    ...formatNote(listKeysInFile(hasExperiment), 'exported without their experiments: '),
    ...formatNote(listKeysInFile(hasAny('features')), 'exported without their early access features: '),
    ...formatNote(statics, 'static cohorts, exported without their members: '),
  ]
}

function formatNote(names: readonly string[], text: string): string[] {
  return names.length === 0 ? [] : [`${text}${truncateList(names).join(', ')}.`]
}
