// `plan.json`: what a job imports, from where to where, and under which rules. Fixed before staging; changing it means
// staging again. Source: docs/wire/import.md §2.1, §2.2.

import { type JsonObject, mayNeedNumberLiterals, parseJson } from '#core/json.ts'
import { toCanonicalJson } from '../records/canonical-json.ts'
import { allowNull, type DeepReadonly, jsonObject, type Static, Type } from '../records/file-schema.ts'
import type { JobFolder } from './job-folder.ts'
import { JobStopped } from './job-paused.ts'
import { sha256Hex } from './sha256.ts'

const targetSchema = Type.Object({
  /** Address of the instance, without a slash at the end. */
  address: Type.String(),
  /** Address of the private API, if the instance serves it on a separate port; `address` when absent. */
  apiAddress: Type.Optional(Type.String()),
  /** The project's public API key. */
  projectKey: Type.String(),
  /**
   * The project's id as the instance reports it to a personal key; id and name are null if the instance could not be asked.
   */
  projectId: allowNull(Type.String()),
  projectName: allowNull(Type.String()),
})

/** Limits that the approval covers. */
const limitsSchema = Type.Object({
  /** Share of rejected records above which the job pauses, 0 to 1. Source: docs/wire/import.md §2.6. */
  maxRejectShare: Type.Number(),
  /** Whether files that become unreadable are imported up to that point; otherwise the job stops at them. */
  allowsDamagedFiles: Type.Optional(Type.Literal(true)),
  /** Refuse events of the last 48 hours instead of sending them as `recent`. */
  holdLiveWindow: Type.Boolean(),
  /** The age in days at which the target deletes events; null if it keeps everything or could not be asked. */
  retentionDays: allowNull(Type.Number()),
  groupTypesMax: Type.Number(),
  /** How the service treats the events and their values, in the format of the service's API; absent for the default. */
  joining: Type.Optional(jsonObject),
  /** Whether the project accepts imported events so old that it would drop them if they were live. */
  acceptsOld: Type.Optional(Type.Boolean()),
  /** The project stores every event without a person, and drops events that merge persons. */
  isPersonless: Type.Optional(Type.Boolean()),
})

const planSchema = Type.Object({
  v: Type.Literal(4),
  jobId: Type.String(),
  /** ISO 8601. Conversion uses this time instead of a clock, so that every later run yields the same events. */
  createdAt: Type.String(),
  toolVersion: Type.String(),
  source: Type.String(),
  /** The argument of the source's `prepare`. */
  config: jsonObject,
  /** Present if the user gave no profile time: `config` then contains the time of the last staged event. */
  isProfileTimeFound: Type.Optional(Type.Literal(true)),
  /** In reading order. For a fetched export, filled in once everything is downloaded. */
  files: Type.Array(Type.Object({ path: Type.String(), object: Type.String() })),
  /** The options of the `pennon import fetch` that created the folder; null for local files. */
  fetch: allowNull(jsonObject),
  /** Null to detect the format of each file. */
  format: allowNull(Type.Enum(['json', 'csv'])),
  /** Null for a rehearsal without a target. */
  target: allowNull(targetSchema),
  limits: limitsSchema,
})

export type ImportTarget = DeepReadonly<Static<typeof targetSchema>>
export type ImportLimits = DeepReadonly<Static<typeof limitsSchema>>
export type ImportPlan = DeepReadonly<Static<typeof planSchema>>

export const planFile = 'plan.json'

export function findApiAddress({ address, apiAddress = address }: ImportTarget): string {
  return apiAddress
}

/** @throws JobStopped for a job that this version cannot continue. */
export function readPlan(folder: JobFolder): ImportPlan | null {
  return folder.readJson(planFile, planSchema, (stored, text) => {
    if ('v' in stored && [1, 2, 3].includes(stored.v as number))
      throw new JobStopped(
        `the job in ${folder.path} was planned by an earlier version of Pennon, whose files this version does not read. Finish or discard it with that version, or plan it in another folder`,
      )
    return restoreExactConfig(stored, text)
  })
}

/** Restores the digits of 64-bit ids in the configuration, which `JSON.parse` rounds but filters compare. */
function restoreExactConfig(stored: object, text: string): object {
  if (!mayNeedNumberLiterals(text)) return stored
  const { config } = parseJson(text) as JsonObject
  return { ...stored, ...(config !== undefined && { config }) }
}

export function writePlan(folder: JobFolder, plan: ImportPlan): void {
  folder.writeJson(planFile, plan)
}

/** A hash of everything that can change the events of a record. @returns hex. */
export function hashConversionSettings(plan: ImportPlan): string {
  const { source, config, format, files, toolVersion, createdAt, limits } = plan
  const { holdLiveWindow, retentionDays, groupTypesMax, isPersonless = false } = limits
  return sha256Hex(
    toCanonicalJson({
      ...{ source, config, format, files: files.map(({ path, object }) => [path, object]), toolVersion, createdAt },
      ...{ holdLiveWindow, retentionDays, groupTypesMax, ...(isPersonless && { isPersonless }) },
    }),
  )
}
