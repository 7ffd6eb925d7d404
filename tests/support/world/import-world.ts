// A world with a real state, for import jobs: events are processed in chunks as the worker does, and jobs are published
// and discarded by the worker's own code.

import assert from 'node:assert/strict'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { type ImportJob, type ImportOptions, usualOptions } from '#core/imports/import-job.ts'
import { openRepairsMax, type RepairReport, type RepairRequest } from '#core/persons/person-repair.ts'
import { discardJob, publishJob } from '#services/imports/manage-jobs.ts'
import { createImportWorker, type ImportWorkOptions } from '#services/imports/run-import-work.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import type { OpenSqlState } from '../state.ts'
import type { Scope } from '../temp-dir.ts'
import { aChange } from '../values.ts'
import { ownerId, worldOn } from './world.ts'

export type ImportWorld = Awaited<ReturnType<typeof importWorld>>

export async function importWorld(t: Scope, open: OpenSqlState) {
  const { management, chunkStore, query } = await open(t, [{ geoipEnabled: false }])
  const world = worldOn(chunkStore, { jobs: management })
  const { chunks, clock, events, log } = world
  events.nowMs = clock.nowMs
  await world.claimStreams()
  let jobCount = 0

  const jobDeps = { management }
  const changeNow = () => aChange('Test', clock.nowMs())
  /** The clock of a worker that has trusted its time for long. */
  const retentionClock = { nowMs: clock.nowMs, isTrusted: () => true }
  /** @param over replaces stores, so that they can fail. */
  function work(over: Partial<ImportWorkOptions> = {}) {
    const deps = { state: chunks, jobs: management, events, log, clock, logger: createSilentLogger(), ownerId }
    return createImportWorker({ ...deps, random: () => 0.5, retentionClock, ...over })
  }

  async function finish(job: ImportJob, state: ImportJob['state'], over?: Partial<ImportWorkOptions>): Promise<void> {
    clock.advance(10_000)
    await work(over).workNow(new AbortController().signal)
    assert.equal((await management.findImportJob(job.id))?.state, state)
  }

  async function createJob(options: Partial<ImportOptions> = {}, projectId = 1) {
    const publicId = 2 ** 40 + ++jobCount
    const created = await management.createImportJob(
      { publicId, projectId, name: 'test', source: 'test', options: { ...usualOptions, ...options }, plan: {} },
      { openMax: 1_000, perDayMax: 1_000, keptMax: 1_000 },
      changeNow(),
    )
    assert.ok(created.ok)
    return created.value
  }

  async function publish(job: ImportJob, over?: Partial<ImportWorkOptions>): Promise<void> {
    assert.ok((await publishJob(jobDeps, 1, job.id, changeNow())).ok)
    await finish(job, 'published', over)
  }

  return {
    ...world,
    management,
    query,
    work,
    createJob,
    publish,
    /** Creates a job, sends these events in one chunk as its own, and publishes it. */
    async publishEvents(...events: readonly CapturedEvent[]) {
      const job = await createJob()
      await world.apply(...events.map(event => ({ ...event, importJobId: job.id })))
      await publish(job)
      return job
    },
    async discard(job: ImportJob, over?: Partial<ImportWorkOptions>): Promise<void> {
      assert.ok((await discardJob(jobDeps, 1, job.id, changeNow())).ok)
      await finish(job, 'discarded', over)
    },
    /** Requests a repair of persons, and has the worker carry it out. @returns the report of a rebuild. */
    async repair(request: RepairRequest, over?: Partial<ImportWorkOptions>): Promise<RepairReport | null> {
      const asked = await management.requestRepair(1, request, openRepairsMax, changeNow())
      assert.ok(asked)
      clock.advance(10_000)
      await work(over).workNow(new AbortController().signal)
      assert.deepEqual(await management.listOpenRepairs(), [])
      return (await management.findRebuild(1, asked.id))?.report ?? null
    },
    startPublishing: (job: ImportJob) => publishJob(jobDeps, 1, job.id, changeNow()),
    startDiscarding: (job: ImportJob) => discardJob(jobDeps, 1, job.id, changeNow()),
    notes: async (job: ImportJob) =>
      Object.fromEntries((await management.listImportNotes(job.id)).map(({ reason, count }) => [reason, count])),
    /** Persons with their ids, groups and types of the project, and the number of staged rows and links. */
    stored: async () => {
      const count = async (from: string) => Number((await query(`SELECT count(*) AS n FROM ${from}`))[0]!.n)
      const persons = await query(
        `SELECT id, uuid, properties, property_marks, created_at, is_identified, last_seen_at
        FROM person WHERE project_id = 1 ORDER BY uuid`,
      )
      const ids = await query(
        'SELECT person_id, distinct_id FROM person_distinct_id WHERE project_id = 1 ORDER BY distinct_id',
      )
      return {
        persons: persons.map(({ id, ...person }) => ({
          ...(person as {
            uuid: string
            properties: string
            property_marks: string
            is_identified: number
            created_at: number
          }),
          created_at: Number(person.created_at),
          ids: ids.flatMap(row => (row.person_id === id ? [row.distinct_id as string] : [])).join(' '),
        })),
        groups: await query(
          `SELECT group_type_index, group_key, group_properties, property_marks, created_at
          FROM "group" WHERE project_id = 1 ORDER BY 1, 2`,
        ),
        groupTypes: await query('SELECT group_type, group_type_index FROM group_type_mapping ORDER BY 2'),
        staged: await count(
          `(SELECT project_id FROM person UNION ALL SELECT project_id FROM person_distinct_id
          UNION ALL SELECT project_id FROM personless_distinct_id UNION ALL SELECT project_id FROM "group") AS rows
          WHERE project_id < 0`,
        ),
        links: await count('import_link'),
      }
    },
    /** Gives the person of a distinct id flag assignments, by flag. */
    assign: async (distinctId: string, hashKeys: Record<string, string>) => {
      for (const [flagKey, hashKey] of Object.entries(hashKeys))
        await query(
          `INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
          SELECT 1, person_id, '${flagKey}', '${hashKey}' FROM person_distinct_id
          WHERE project_id = 1 AND distinct_id = '${distinctId}' RETURNING person_id`,
        )
    },
    /** Each flag assignment, with the last distinct id of its person. */
    assignments: async () =>
      (
        await query(
          `SELECT max(d.distinct_id) || ' ' || feature_flag_key || '=' || hash_key AS text
          FROM flag_hash_key_override AS o JOIN person_distinct_id AS d ON d.person_id = o.person_id
          GROUP BY o.person_id, feature_flag_key, hash_key ORDER BY 1`,
        )
      ).map(({ text }) => text as string),
    /** Deletes all rows of an event, as the retention of events does. */
    forget: ({ uuid }: Pick<CapturedEvent, 'uuid'>) => {
      for (const [key, row] of events.rows) if (row.uuid === uuid) events.copies.delete(key)
    },
    /** The person of each visible row, by uuid, as queries see it: through the overrides. */
    personOfRows: () => {
      const persons = new Map<string, string>()
      for (const row of events.rows.values()) {
        const override = [...events.overrides.values()].find(each => each.distinctId === row.distinctId)
        persons.set(row.uuid, override?.personId ?? row.personId)
      }
      return persons
    },
  }
}
