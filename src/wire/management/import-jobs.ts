// Import jobs as the private API shows them. Source: docs/wire/import.md §2.8 to §2.11.

import Type, { type Static } from 'typebox'
import type { ImportNote } from '#core/imports/import-changes.ts'
import {
  type DescribedImportJob,
  encodeImportOptions,
  type ImportJobState,
  type ImportOptions,
  importJobStates,
  type OpenState,
  openStates,
} from '#core/imports/import-job.ts'
import type { ImportedCount, ImportedRowCounts } from '#core/imports/imported-counts.ts'
import { formatJobFailure } from '#core/imports/job-failure.ts'
import { formatInstant, idSchema, instantSchema, jsonObjectSchema, nullable } from './shapes.ts'

const nameSchema = Type.String({ minLength: 1, maxLength: 400, description: 'Display name of the job.' })
const planSchema = jsonObjectSchema("The importer's plan: range, time zone, hashes, tool version. Up to 64 KiB.")
const progressSchema = jsonObjectSchema("The importer's progress, returned as sent. Up to 64 KiB.")

const optionsSchema = Type.Object({
  person_properties: Type.Optional(
    Type.Unsafe<'keep' | 'overwrite'>({
      type: 'string',
      enum: ['keep', 'overwrite'],
      description: "Whether the job's $set values replace live values on publishing. Default: keep.",
    }),
  ),
  first_touch_backdate: Type.Optional(
    Type.Boolean({
      description: "Whether the job's $set_once values replace those of later live events. Default: false.",
    }),
  ),
  experiments: Type.Optional(
    Type.Boolean({
      description: "Whether the job's flag calls count as flag exposures, by event time. Default: false.",
    }),
  ),
  geoip: Type.Optional(
    Type.Boolean({
      description: "Whether the job's events get the location of their recorded $ip. Default: false.",
    }),
  ),
})

export const importJobSchema = Type.Object({
  id: nullable(
    Type.Integer({
      minimum: 1,
      description:
        'Value for the X-Import-Job header. It allows adding events, so it is null for keys without import_job:write.',
    }),
  ),
  number: Type.Integer({
    minimum: 2,
    description:
      'Public id of the job, used in URLs and as import_job_id of its events. It does not allow adding events.',
  }),
  project: idSchema,
  name: Type.String(),
  source: Type.String(),
  state: Type.Unsafe<ImportJobState>({ type: 'string', enum: [...importJobStates] }),
  day: nullable(
    Type.String({
      description:
        'For implicit import jobs: the UTC day whose imports without a job this job collects; otherwise null.',
    }),
  ),
  options: optionsSchema,
  step: nullable(Type.String({ description: 'Current step of publishing or discarding.' })),
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
        code: Type.String({ description: 'The reason, such as event_store_unavailable.' }),
        message: Type.String(),
        since: instantSchema,
      },
      { description: 'Why and since when publishing or discarding is stalled; null while it progresses.' },
    ),
  ),
})
type ImportJobJson = Static<typeof importJobSchema>

export const createImportJobSchema = Type.Object({
  name: Type.Optional(nameSchema),
  source: Type.String({ minLength: 1, maxLength: 100, description: 'Source of the events, such as "mixpanel".' }),
  options: Type.Optional(optionsSchema),
  replay_side_effects: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: 100,
      description: 'Destinations that receive the events. Not supported yet: must be empty.',
    }),
  ),
  accept_old: Type.Optional(
    Type.Boolean({
      description: 'Import old events even if the project drops them (drop_events_older_than_seconds). Default: false.',
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
      description: "The importer's progress. Publishing and discarding have separate endpoints.",
    }),
  ),
  plan: Type.Optional(planSchema),
  progress: Type.Optional(progressSchema),
})

/** The most bytes of each of `plan` and `progress`. */
export const importJobTextBytesMax = 65_536

const countSchema = Type.Object({ day: Type.String({ format: 'date' }), event: Type.String(), uuids: Type.Integer() })

export const importCountPageSchema = Type.Object({ next: nullable(Type.String()), results: Type.Array(countSchema) })

export const importReportSchema = Type.Object({
  job: importJobSchema,
  rows: Type.Integer({ description: 'Stored events of the job, without duplicates.' }),
  accepted: nullable(
    Type.Integer({
      description:
        'Events processed and stored for the job, including duplicates from other batches; null if not counted.',
    }),
  ),
  counts: Type.Array(countSchema, {
    description: 'Stored events by UTC day and name, in this order; the first ones if there are too many.',
  }),
  counts_next: nullable(Type.String({ description: 'URL of the next counts; null if these are all.' })),
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
          'Samples that identify persons: only for keys with person:read. Those that identify groups also require group:read.',
      }),
    }),
    { description: "Outcomes of the job's events, links and persons, by reason." },
  ),
})

/** @param showsId whether the caller may add events to the job. */
export function encodeImportJob(job: DescribedImportJob, showsId: boolean): ImportJobJson {
  return {
    id: showsId ? job.publicId : null,
    number: job.id,
    project: job.projectId,
    name: job.name,
    source: job.source,
    state: job.state,
    day: job.day?.slice(0, 10) ?? null,
    options: encodeImportOptions(job.options),
    step: job.step,
    plan: job.plan,
    progress: job.progress,
    created_by: job.createdBy?.label ?? null,
    created_at: formatInstant(job.createdAtMs),
    updated_at: formatInstant(job.updatedAtMs),
    published_at: formatInstantOrNull(job.publishedAtMs),
    discarded_at: formatInstantOrNull(job.discardedAtMs),
    failure: job.failure && {
      code: job.failure.code,
      message: formatJobFailure(job.failure.code),
      since: formatInstant(job.failure.sinceMs),
    },
  }
}

export function encodeImportJobReport(
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

function formatInstantOrNull(ms: number | null): string | null {
  return ms === null ? null : formatInstant(ms)
}
