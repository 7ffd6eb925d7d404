// `plan.json`: what a job imports, from where to where, and under which rules. Fixed before anything is staged; another
// choice stages anew. Source: docs/wire/import.md §2.1, §2.2.

import { type JsonObject, mayKeepLiterals, parseJson } from '#core/json.ts'
import { isTooOld } from '#ports/unfit-schema-error.ts'
import type { RawFile } from '../read/read-record.ts'
import { canonicalJson } from '../records/canonical-json.ts'
import { jsonObject, orNull, Type } from '../records/file-schema.ts'
import type { JobFolder } from './job-folder.ts'
import { JobStopped } from './job-paused.ts'
import { sha256Hex } from './sha256.ts'

export interface ImportTarget {
  /** Address of the instance, without a slash at the end. */
  readonly address: string
  /** Address of the private API, where an instance serves that on a port of its own; `address` when absent. */
  readonly apiAddress?: string
  /** The project's public API key. */
  readonly projectKey: string
  /** As the instance tells them to a personal key; null when it could not be asked. */
  readonly projectId: string | null
  readonly projectName: string | null
}

/** Limits that the approval is given for. */
export interface ImportLimits {
  /** Share of rejected records above which the job pauses, 0 to 1. Source: docs/wire/import.md §2.6. */
  readonly maxRejectShare: number
  /** Whether files that cannot be read to their end are imported as far as they go; else the job stops for them. */
  readonly allowsDamagedFiles?: true
  /** Refuse events of the last 48 hours instead of sending them as `recent`. */
  readonly holdLiveWindow: boolean
  /** The target deletes what is older, in days; null when it keeps everything or could not be asked. */
  readonly retentionDays: number | null
  readonly groupTypesMax: number
  /** How the service treats the events and their values, in its own words; as usual when absent. */
  readonly joining?: JsonObject
  /** Whether the project takes events that it would drop for their age if they were live. */
  readonly acceptsOld?: boolean
  /** The project takes every event without a person: it drops those that join persons. */
  readonly isPersonless?: boolean
}

/** Where the private API of a target is. */
export function apiAddressOf({ address, apiAddress = address }: ImportTarget): string {
  return apiAddress
}

export interface ImportPlan {
  readonly v: 2
  readonly jobId: string
  /** ISO 8601. The only clock of the conversion, so that every later run gives the same events. */
  readonly createdAt: string
  readonly toolVersion: string
  readonly source: string
  /** As the source's `prepare` takes it. */
  readonly config: JsonObject
  /** Present where the time of the profiles in `config` is that of the last event staged, since no other was given. */
  readonly isProfileTimeFound?: true
  /** In the order in which they are read; of what is fetched, once all of it is there. */
  readonly files: readonly RawFile[]
  /** What `pennon import fetch` began the folder with; null for files that were there. */
  readonly fetch: JsonObject | null
  /** What the texts hold; null to find out from each file. */
  readonly format: 'json' | 'csv' | null
  /** Null for a rehearsal without a target. */
  readonly target: ImportTarget | null
  readonly limits: ImportLimits
}

export const planFile = 'plan.json'

const planSchema = Type.Object({
  v: Type.Literal(2),
  jobId: Type.String(),
  createdAt: Type.String(),
  toolVersion: Type.String(),
  source: Type.String(),
  config: jsonObject,
  isProfileTimeFound: Type.Optional(Type.Literal(true)),
  files: Type.Array(Type.Object({ path: Type.String(), object: Type.String() })),
  fetch: orNull(jsonObject),
  format: orNull(Type.Enum(['json', 'csv'])),
  target: orNull(
    Type.Object({
      address: Type.String(),
      apiAddress: Type.Optional(Type.String()),
      projectKey: Type.String(),
      projectId: orNull(Type.String()),
      projectName: orNull(Type.String()),
    }),
  ),
  limits: Type.Object({
    maxRejectShare: Type.Number(),
    allowsDamagedFiles: Type.Optional(Type.Literal(true)),
    holdLiveWindow: Type.Boolean(),
    retentionDays: orNull(Type.Number()),
    groupTypesMax: Type.Number(),
    joining: Type.Optional(jsonObject),
    acceptsOld: Type.Optional(Type.Boolean()),
    isPersonless: Type.Optional(Type.Boolean()),
  }),
})

/** @throws JobStopped for a folder that this version cannot go on with. */
export function readPlan(folder: JobFolder): ImportPlan | null {
  return folder.readJson(planFile, planSchema, (stored, text) => {
    if ('v' in stored && stored.v === 1)
      throw new JobStopped(
        `the job in ${folder.path} ${isTooOld}. Finish or discard it with that version, or plan it in another folder`,
      )
    return withExactConfig(stored, text)
  })
}

/** A filter compares 64-bit ids by all of their digits, of which `JSON.parse` keeps some. */
function withExactConfig(stored: object, text: string): object {
  if (!mayKeepLiterals(text)) return stored
  const { config } = parseJson(text) as JsonObject
  return { ...stored, ...(config !== undefined && { config }) }
}

export function writePlan(folder: JobFolder, plan: ImportPlan): void {
  folder.writeJson(planFile, plan)
}

/**
 * Changes with everything that decides what becomes of a record.
 * @returns hex.
 */
export function mappingSha256(plan: ImportPlan): string {
  const { source, config, format, files, toolVersion, createdAt, limits } = plan
  const { holdLiveWindow, retentionDays, groupTypesMax, isPersonless = false } = limits
  return sha256Hex(
    canonicalJson({
      ...{ source, config, format, files: files.map(({ path, object }) => [path, object]), toolVersion, createdAt },
      ...{ holdLiveWindow, retentionDays, groupTypesMax, ...(isPersonless && { isPersonless }) },
    }),
  )
}
