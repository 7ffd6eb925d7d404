// Converts the options of `pennon import plan` to the values of a plan.

import { readFileSync } from 'node:fs'
import { refuse } from '#commands/refuse.ts'
import { isJsonObject, type JsonObject, parseJson } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ImportLimits } from '#importer/job/plan.ts'

/** As commander gives them. */
export interface PlanOptions {
  readonly source: string
  readonly config?: string
  readonly mapping?: string
  readonly sourceTimezone?: string
  readonly profileTimestamp?: string
  readonly format?: 'json' | 'csv'
  readonly host?: string
  readonly apiHost?: string
  readonly projectKey?: string
  readonly maxRejectShare: string
  readonly allowDamagedFiles?: boolean
  readonly holdLiveWindow?: boolean
  readonly retentionDays?: string
  readonly keepIdentical?: boolean
  readonly promoteGroups?: boolean
  readonly allowDangerousMerge?: boolean
  readonly keepPersonData?: boolean
  readonly stripPersonData?: boolean
  readonly personProperties?: 'keep' | 'overwrite'
  readonly firstTouchBackdate?: boolean
  readonly geoipFromRecord?: boolean
  readonly countInExperiments?: boolean
  readonly acceptOld?: boolean
  readonly json?: boolean
}

/** Options that become keys of the source's configuration. A source refuses keys that it does not know. */
const switches = {
  keepIdentical: 'keep_identical',
  promoteGroups: 'promote_groups',
  allowDangerousMerge: 'allow_dangerous_merge',
} as const

type SourceOptions = Omit<PlanOptions, 'maxRejectShare'>

/**
 * @returns the configuration of the source, and the limit `holdLiveWindow`, which the configuration of any source may
 * contain.
 */
export function readSourceConfig(
  options: SourceOptions,
): Pick<ImportLimits, 'holdLiveWindow'> & { config: JsonObject } {
  const given = options.config === undefined ? {} : readJsonFile(options.config, '--config')
  const { hold_live_window: isHeld = false, ...config }: JsonObject = given
  if (typeof isHeld !== 'boolean') refuse('hold_live_window in the configuration must be true or false')
  if (options.mapping !== undefined) config.mapping = readJsonFile(options.mapping, '--mapping')
  if (options.sourceTimezone !== undefined) config.source_timezone = options.sourceTimezone
  if (options.profileTimestamp !== undefined) config.profile_timestamp = options.profileTimestamp
  for (const [option, key] of Object.entries(switches))
    if (options[option as keyof typeof switches] === true) config[key] = true
  const isStripped = readStripPersonData(options)
  if (isStripped !== null) config.strip_person_updates = isStripped
  return { config, holdLiveWindow: isHeld || options.holdLiveWindow === true }
}

/** @returns whether the person data of events is left out; null if the project decides. */
function readStripPersonData({
  source,
  keepPersonData = false,
  stripPersonData = false,
}: SourceOptions): boolean | null {
  if (!keepPersonData && !stripPersonData) return null
  if (keepPersonData && stripPersonData) refuse('--keep-person-data and --strip-person-data cannot be combined')
  if (source !== 'posthog')
    refuse(
      '--keep-person-data and --strip-person-data are only for the source posthog; other sources keep all person data',
    )
  return stripPersonData
}

export function readImportLimits(options: PlanOptions): Omit<ImportLimits, 'holdLiveWindow'> {
  const { personProperties = 'keep', firstTouchBackdate = false } = options
  const joining: JsonObject = {
    ...((personProperties !== 'keep' || firstTouchBackdate) && {
      person_properties: personProperties,
      first_touch_backdate: firstTouchBackdate,
    }),
    ...(options.geoipFromRecord === true && { geoip: true }),
    ...(options.countInExperiments === true && { experiments: true }),
  }
  return {
    maxRejectShare: parseShare(options.maxRejectShare, '--max-reject-share'),
    retentionDays: options.retentionDays === undefined ? null : parseRetentionDays(options.retentionDays),
    groupTypesMax: 5,
    ...(options.allowDamagedFiles === true && { allowsDamagedFiles: true as const }),
    ...(Object.keys(joining).length > 0 && { joining }),
    ...(options.acceptOld === true && { acceptsOld: true }),
  }
}

/** @param text `1%` or `0.01`. @returns 0 to 1. */
export function parseShare(text: string, option: string): number {
  const [, digits, sign] = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text.trim()) ?? []
  const share = digits === undefined ? Number.NaN : Number(digits) / (sign === '%' ? 100 : 1)
  return share >= 0 && share <= 1 ? share : refuse(`${option} must be a share such as 1% or 0.01, not ${text}`)
}

function parseRetentionDays(text: string): number {
  return /^[1-9]\d*$/.test(text) ? Number(text) : refuse(`--retention-days must be a number of days, not ${text}`)
}

/**
 * @param name what the file is called in the message. @returns why a file does not contain a JSON object; null if it does.
 */
export function findJsonFileProblem(path: string, name: string): string | null {
  const read = readJsonObject(path, name)
  return read.ok ? null : read.error
}

/** Refuses a file that does not contain a JSON object. @param option the option that names the file, for the message. */
export function readJsonFile(path: string, option: string): JsonObject {
  const read = readJsonObject(path, option)
  return read.ok ? read.value : refuse(read.error)
}

function readJsonObject(path: string, name: string): Result<JsonObject, string> {
  try {
    const value = parseJson(readFileSync(path, 'utf8'))
    return isJsonObject(value) ? ok(value) : err(`${name} ${path} does not contain a JSON object`)
  } catch (error) {
    return err(`${name} ${path} cannot be read: ${(error as Error).message}`)
  }
}
