// Import jobs as the private API shows them. Source: docs/wire/import.md §2.8 to §2.11.

import Type, { type Static } from 'typebox'
import type { ImportNote } from '#core/imports/import-changes.ts'
import {
  type DescribedImportJob,
  type ImportJobState,
  type ImportOptions,
  importJobStates,
  type OpenState,
  openStates,
} from '#core/imports/import-job.ts'
import type { ImportedCount, ImportedRowCounts } from '#core/imports/imported-counts.ts'
import { failureWords } from '#core/imports/job-failure.ts'
import { idSchema, instant, instantSchema, jsonObjectSchema, nullable } from './shapes.ts'

const nameSchema = Type.String({ minLength: 1, maxLength: 400, description: 'What the job is called in lists.' })
const planSchema = jsonObjectSchema('What the importer plans: range, zone, hashes, version of the tool. Up to 64 KiB.')
const progressSchema = jsonObjectSchema('How far the importer is; shown as it was sent. Up to 64 KiB.')

const optionsSchema = Type.Object({
  person_properties: Type.Optional(
    Type.Unsafe<'keep' | 'overwrite'>({
      type: 'string',
      enum: ['keep', 'overwrite'],
      description: 'Whether its $set replaces live values when the job is published. keep unless given.',
    }),
  ),
  first_touch_backdate: Type.Optional(
    Type.Boolean({ description: 'Whether its $set_once replaces those of later live events. false unless given.' }),
  ),
  experiments: Type.Optional(
    Type.Boolean({
      description: 'Whether its flag calls count in exposures of flags, by the time of the event. false unless given.',
    }),
  ),
  geoip: Type.Optional(
    Type.Boolean({
      description: 'Whether its events get the location of the $ip that they were recorded with. false unless given.',
    }),
  ),
})

export const importJobSchema = Type.Object({
  id: nullable(
    Type.Integer({
      minimum: 1,
      description:
        'What X-Import-Job sends. Whoever knows it can add events, so it is null for keys without import_job:write.',
    }),
  ),
  number: Type.Integer({
    minimum: 2,
    description: 'What its events have as import_job_id; addresses it here. It may be shown: it adds no events.',
  }),
  project: idSchema,
  name: Type.String(),
  source: Type.String(),
  state: Type.Unsafe<ImportJobState>({ type: 'string', enum: [...importJobStates] }),
  day: nullable(
    Type.String({ description: 'The UTC day whose imports without a job this job collects; null for others.' }),
  ),
  options: optionsSchema,
  step: nullable(Type.String({ description: 'What publishing or discarding is at.' })),
  plan: planSchema,
  progress: progressSchema,
  created_by: nullable(Type.String()),
  created_at: instantSchema,
  updated_at: instantSchema,
  published_at: nullable(instantSchema),
  discarded_at: nullable(instantSchema),
  failure: nullable(
    Type.Object(
      {
        code: Type.String({ description: 'A store and what is wrong with it, such as event_store_unavailable.' }),
        message: Type.String(),
        since: instantSchema,
      },
      { description: 'Why publishing or discarding waits, and since when; null while it gets on.' },
    ),
  ),
})
type ImportJobJson = Static<typeof importJobSchema>

export const createImportJobSchema = Type.Object({
  name: Type.Optional(nameSchema),
  source: Type.String({ minLength: 1, maxLength: 100, description: 'Where the events are from, such as "mixpanel".' }),
  options: Type.Optional(optionsSchema),
  replay_side_effects: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: 100,
      description: 'Destinations that get the events all the same. There are none yet, so the list has to be empty.',
    }),
  ),
  accept_old: Type.Optional(
    Type.Boolean({
      description: 'Import although the project drops old events (drop_events_older_than_seconds). false unless given.',
    }),
  ),
  plan: Type.Optional(planSchema),
})

export function decodeImportOptions(sent: Static<typeof optionsSchema> = {}): ImportOptions {
  return {
    overwritesPersons: sent.person_properties === 'overwrite',
    backdatesFirstTouch: sent.first_touch_backdate === true,
    looksUpGeoip: sent.geoip === true,
    countsInExperiments: sent.experiments === true,
  }
}

export const updateImportJobSchema = Type.Object({
  name: Type.Optional(nameSchema),
  state: Type.Optional(
    Type.Unsafe<OpenState | 'failed'>({
      type: 'string',
      enum: [...openStates, 'failed'],
      description: 'How far the importer is. Publishing and discarding have addresses of their own.',
    }),
  ),
  plan: Type.Optional(planSchema),
  progress: Type.Optional(progressSchema),
})

/** Bytes of `plan` and `progress` each. */
export const importJobTextBytesMax = 65_536

const countSchema = Type.Object({ day: Type.String({ format: 'date' }), event: Type.String(), uuids: Type.Integer() })

export const importCountPageSchema = Type.Object({ next: nullable(Type.String()), results: Type.Array(countSchema) })

export const importReportSchema = Type.Object({
  job: importJobSchema,
  rows: Type.Integer({ description: 'Stored events of the job, each once.' }),
  accepted: nullable(
    Type.Integer({
      description:
        'Events that were processed for the job and stored, repeats of another batch included; null where nobody counted.',
    }),
  ),
  counts: Type.Array(countSchema, {
    description: 'Stored events by UTC day and name, in this order; of very many, the first ones.',
  }),
  counts_next: nullable(
    Type.String({ description: 'The address of the counts that follow; null where these are all.' }),
  ),
  id_buckets: Type.Array(Type.Integer(), {
    description: 'Stored events by the CRC-32 of their distinct id, modulo 256.',
    minItems: 256,
    maxItems: 256,
  }),
  notes: Type.Array(
    Type.Object({
      reason: Type.String(),
      count: Type.Integer(),
      samples: Type.Array(jsonObjectSchema(), {
        description:
          'Some of them, which name persons: for keys with person:read. What names a group needs group:read too.',
      }),
    }),
    { description: 'What happened to events, links and persons of the job, by reason.' },
  ),
})

/** @param showsId whether the reader may add events to it. */
export function encodeImportJob(job: DescribedImportJob, showsId: boolean): ImportJobJson {
  return {
    id: showsId ? job.publicId : null,
    number: job.id,
    project: job.projectId,
    name: job.name,
    source: job.source,
    state: job.state,
    day: job.day?.slice(0, 10) ?? null,
    options: {
      person_properties: job.options.overwritesPersons ? 'overwrite' : 'keep',
      first_touch_backdate: job.options.backdatesFirstTouch,
      geoip: job.options.looksUpGeoip,
      experiments: job.options.countsInExperiments,
    },
    step: job.step,
    plan: job.plan,
    progress: job.progress,
    created_by: job.createdBy,
    created_at: instant(job.createdAtMs),
    updated_at: instant(job.updatedAtMs),
    published_at: instantOrNull(job.publishedAtMs),
    discarded_at: instantOrNull(job.discardedAtMs),
    failure: job.failure && {
      code: job.failure.code,
      message: failureWords(job.failure.code),
      since: instant(job.failure.sinceMs),
    },
  }
}

export function encodeImportReport(
  job: DescribedImportJob,
  { rows, idBuckets }: ImportedRowCounts,
  { counts, next }: { readonly counts: readonly ImportedCount[]; readonly next: string | null },
  notes: readonly ImportNote[],
  shown: { readonly showsId: boolean; readonly showsPersons: boolean; readonly showsGroups: boolean },
): Static<typeof importReportSchema> {
  return {
    job: encodeImportJob(job, shown.showsId),
    rows,
    accepted: job.storedRows,
    counts: [...counts],
    counts_next: next,
    id_buckets: [...idBuckets],
    notes: notes.map(({ reason, count, samples }) => ({
      reason,
      count,
      samples: samples.filter(sample => shown.showsPersons && (shown.showsGroups || !('groupKey' in sample))),
    })),
  }
}

function instantOrNull(ms: number | null): string | null {
  return ms === null ? null : instant(ms)
}
