// The contract of a state for import jobs: from their first event to their undoing. Random events of an import and of live clients are
// compared with what ought to be there; interruptions are injected between any two writes.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { ImportOptions } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import { PortError } from '#ports/port-error.ts'
import type { ImportWorkDeps } from '#services/imports/job-batch.ts'
import { anEvent, anImportedEvent } from '../support/apply-events.ts'
import { type ImportWorld, importWorld, type OpenImportState } from '../support/import-world.ts'

const day = 86_400_000

/** What an event does, without its time and uuid. */
interface Act {
  readonly name: string
  readonly id: string
  readonly properties: JsonObject
}

const ids = ['a', 'b', 'c', 'd', 'e']
const id = fc.constantFrom(...ids)
const key = fc.constantFrom('k', 'l', 'm')
const value = fc.integer({ min: 0, max: 9 })
const bag = fc.dictionary(key, value, { maxKeys: 2 })
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ name: fc.constant('e'), id, properties: fc.record({ $set: bag, $set_once: bag }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      name: fc.constant('$set'),
      id,
      properties: key.map((unset): JsonObject => ({ $unset: [unset] })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      name: fc.constant('$identify'),
      id,
      properties: fc.record({ $anon_distinct_id: id, $set: bag }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      name: fc.constant('$groupidentify'),
      id,
      properties: fc.record({
        $group_type: fc.constantFrom('org', 'team'),
        $group_key: fc.constantFrom('x', 'y'),
        $group_set: bag,
      }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ name: fc.constant('e'), id, properties: fc.constant({ $process_person_profile: false }) }),
  },
)
const acts = fc.array(act, { maxLength: 12 })

function live({ name, id, properties }: Act, index: number): CapturedEvent {
  return anEvent(name, id, properties, { timestampMs: 200 * day + index })
}

function imported(jobId: number): (act: Act, index: number) => CapturedEvent {
  return ({ name, id, properties }, index) =>
    anImportedEvent(name, id, (1 + ((index * 7) % 13)) * day, properties, { importJobId: jobId })
}

async function applyAll(world: ImportWorld, events: readonly CapturedEvent[]): Promise<void> {
  for (let from = 0; from < events.length; from += 5) await world.apply(...events.slice(from, from + 5))
}

type Property = (world: ImportWorld, ...lists: (readonly Act[])[]) => Promise<void>

/** @param numRuns random runs of each property. */
export function importJobsContract(engine: string, open: OpenImportState, numRuns: number): void {
  async function check(t: TestContext, property: Property): Promise<void> {
    await fc.assert(
      fc.asyncProperty(acts, acts, acts, async (before, during, after) =>
        property(await importWorld(t, open), before, during, after),
      ),
      { numRuns },
    )
  }

  describe(`a pending import job on ${engine}`, () => {
    it('changes nothing of its project, and leaves nothing when it is discarded', t =>
      check(t, async (world, before, during) => {
        await applyAll(world, before.map(live))
        const stored = await world.stored()
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        const { persons, groups } = await world.stored()
        assert.deepEqual({ persons, groups }, { persons: stored.persons, groups: stored.groups })
        assert.equal(world.events.rows.size, before.filter(isKept).length)
        await world.discard(job)
        assert.deepEqual(await world.stored(), stored)
        assert.equal(world.events.pending.length, 0)
      }))

    it('refuses events once it is closed, and counts those that came too late', async t => {
      const world = await importWorld(t, open)
      const [published, discarded] = [await world.createJob(), await world.createJob()]
      await world.publish(published)
      await world.discard(discarded)
      await world.apply(
        anImportedEvent('e', 'a', day, {}, { importJobId: published.id }),
        anImportedEvent('e', 'a', day, {}, { importJobId: discarded.id }),
      )
      assert.deepEqual(
        [...world.events.rejected.values()].map(({ reason }) => reason),
        ['import_job_closed'],
      )
      assert.deepEqual(
        [world.events.rows.size, world.events.pending.length, (await world.stored()).persons],
        [0, 0, []],
      )
    })
  })

  describe(`a published import job on ${engine}`, () => {
    it('has made the persons and groups that its events make at once', t =>
      check(t, async (world, before, during) => {
        const ofLive = before.map(live)
        await applyAll(world, ofLive)
        const job = await world.createJob()
        const events = during.filter(({ name }) => name !== '$identify').map(imported(job.id))
        await applyAll(world, events)
        await world.publish(job)
        const { persons, groups } = await withoutMarks(world)
        const direct = await importWorld(t, open)
        await applyAll(direct, ofLive)
        await applyAll(
          direct,
          events.map(event => ({ ...event, importJobId: 1 })),
        )
        const atOnce = await withoutMarks(direct)
        assert.deepEqual({ persons, groups }, { persons: atOnce.persons, groups: atOnce.groups })
        assert.equal((await world.stored()).shelved, 0)
      }))

    it('links its ids, and every row has the person of its id', t =>
      check(t, async (world, before, during) => {
        await applyAll(world, before.map(live))
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        await world.publish(job)
        assert.equal((await world.stored()).links, 0)
        await assertRowsHaveTheirPersons(world)
      }))

    it('is undone to what was there before, byte for byte', t =>
      check(t, async (world, before, during) => {
        await applyAll(world, before.map(live))
        const stored = await world.stored()
        const rows = world.personOfRows()
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        await world.publish(job)
        await world.discard(job)
        assert.deepEqual(await world.stored(), stored)
        assert.deepEqual(world.personOfRows(), rows)
        assert.deepEqual(Object.keys(await world.notes(job)).filter(isAboutUndoing), [])
      }))

    it('leaves live values alone, when it is published and when it is undone', t =>
      check(t, async (world, before, during, after) => {
        await applyAll(world, before.map(live))
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        await world.publish(job)
        const lateActs = after.filter(({ name }) => name === 'e')
        const late = lateActs.map((act, index) => live(act, 1_000 + index))
        await applyAll(world, late)
        await world.discard(job)
        await assertRowsHaveTheirPersons(world)
        // A split leaves what was written since with the person that it was written to.
        const last = new Map(
          lateActs.flatMap(({ id, properties }) =>
            Object.entries((properties.$set ?? {}) as JsonObject).map(([key, value]) => [`${id} ${key}`, value]),
          ),
        )
        const kept = new Set(
          (await world.stored()).persons.flatMap(({ properties }) =>
            Object.entries(JSON.parse(properties) as JsonObject).map(([key, value]) => `${key} ${value}`),
          ),
        )
        const finalKeys = [...last.keys()].filter(name => isLastOfPerson(name, lateActs))
        for (const name of finalKeys) assert.ok(kept.has(`${name.split(' ')[1]} ${last.get(name)}`), name)
      }))

    it('goes on after a crash at any write, and comes to the same end', t =>
      check(t, async (world, before, during) => {
        await applyAll(world, before.map(live))
        const stored = await world.stored()
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        assert.ok((await world.startPublishing(job)).ok)
        await finishWithCrashes(world, job.id, 'published')
        await assertRowsHaveTheirPersons(world)
        assert.ok((await world.startDiscarding(job)).ok)
        await finishWithCrashes(world, job.id, 'discarded')
        assert.deepEqual(await world.stored(), stored)
      }))
  })

  describe(`the options of an import job on ${engine}`, () => {
    const liveThenImport = async (t: TestContext, options: Partial<ImportOptions>) => {
      const world = await importWorld(t, open)
      const job = await world.createJob(options)
      await world.apply(
        anEvent('e', 'a', { $set: { plan: 'live' }, $set_once: { source: 'late' } }, { timestampMs: 200 * day }),
      )
      const stored = await world.stored()
      const properties = { $set: { plan: 'imported' }, $set_once: { source: 'early' } }
      await world.apply(anImportedEvent('e', 'a', day, properties, { importJobId: job.id }))
      await world.publish(job)
      const { plan, source } = JSON.parse((await personWith(world, 'a'))!.properties) as JsonObject
      await world.discard(job)
      assert.deepEqual(await world.stored(), stored)
      return [plan, source]
    }

    it('keep live values unless one says otherwise', async t => {
      assert.deepEqual(await liveThenImport(t, {}), ['live', 'late'])
    })

    it('may let it overwrite what live events set', async t => {
      assert.deepEqual(await liveThenImport(t, { overwritesPersons: true }), ['imported', 'late'])
    })

    it('may let it give back the first touch to an earlier event', async t => {
      assert.deepEqual(await liveThenImport(t, { backdatesFirstTouch: true }), ['live', 'early'])
    })
  })

  it(`is undone on ${engine} although live events have merged two of its persons since`, async t => {
    const world = await importWorld(t, open)
    const [job, other] = [await world.createJob(), await world.createJob()]
    const set = (key: string) => ({ $set: { [key]: 1 } })
    await world.apply(
      anImportedEvent('e', 'user', day, set('k'), { importJobId: job.id }),
      anImportedEvent('e', 'anon', day, set('l'), { importJobId: job.id }),
    )
    await world.publish(job)
    await world.apply(anEvent('$identify', 'user', { $anon_distinct_id: 'anon' }, { timestampMs: 200 * day }))
    await world.startPublishing(other)
    await world.discard(job)
    const { properties, ids } = (await personWith(world, 'user'))!
    assert.deepEqual([ids, 'k' in JSON.parse(properties), 'l' in JSON.parse(properties)], ['anon user', false, false])
    assert.equal((await world.management.findImportJob(other.id))?.state, 'published')
  })

  it(`takes what came of an import job on ${engine} while it had failed`, async t => {
    const world = await importWorld(t, open)
    const job = await world.createJob()
    const at = { updatedAtMs: world.clock.nowMs() }
    await world.management.updateImportJob(job.id, { state: 'failed', ...at }, { states: ['planned'] })
    await world.apply(anImportedEvent('e', 'a', day, {}, { importJobId: job.id }))
    assert.equal(world.events.pending.length, 1)
  })

  describe(`what cannot be undone on ${engine}`, () => {
    it('is a key that live data has written since', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anEvent('e', 'a', { $set: { kept: 1 } }, { timestampMs: 200 * day }))
      await world.apply(
        anImportedEvent('e', 'a', day, { $set: { plan: 'old', city: 'Oslo' } }, { importJobId: job.id }),
      )
      await world.publish(job)
      await world.apply(anEvent('e', 'a', { $set: { plan: 'new' } }, { timestampMs: 201 * day }))
      await world.discard(job)
      const { properties } = (await personWith(world, 'a'))!
      const { kept, plan, city } = JSON.parse(properties) as JsonObject
      assert.deepEqual([kept, plan, city], [1, 'new', undefined])
      assert.deepEqual(await world.notes(job), { 'undo_left:property_was_written': 1 })
    })

    it('is a merge that somebody has built on', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(
        ...['user', 'device', 'third'].map(id => anEvent('e', id, { $set: { [id]: 1 } }, { timestampMs: 200 * day })),
      )
      await world.apply(
        anImportedEvent('$identify', 'user', day, { $anon_distinct_id: 'device' }, { importJobId: job.id }),
      )
      await world.publish(job)
      await world.apply(anEvent('$identify', 'user', { $anon_distinct_id: 'third' }, { timestampMs: 201 * day }))
      await world.discard(job)
      assert.equal((await personWith(world, 'user'))?.ids, 'device third user')
      assert.equal((await world.notes(job))['undo_left:merge_was_built_on'], 1)
      await assertRowsHaveTheirPersons(world)
    })

    it('is a person that other events have used since', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anImportedEvent('e', 'new', day, { $set: { plan: 'old' } }, { importJobId: job.id }))
      await world.publish(job)
      await world.apply(anEvent('e', 'new', {}, { timestampMs: 201 * day }))
      await world.discard(job)
      assert.ok(!('plan' in (JSON.parse((await personWith(world, 'new'))!.properties) as JsonObject)))
      assert.equal((await world.notes(job))['undo_left:person_is_used'], 1)
    })

    it('is a job that was published more than 30 days ago', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }, { importJobId: job.id }))
      await world.publish(job)
      world.clock.advance(31 * day)
      assert.deepEqual(await world.startDiscarding(job), { ok: false, error: 'final' })
      await world.work().workNow(new AbortController().signal)
      assert.deepEqual(await world.management.listImportImages(job.id, 'person', 1), [])
    })
  })

  it(`is discarded on ${engine} when its project is gone`, async t => {
    const world = await importWorld(t, open)
    const job = await world.createJob()
    await world.apply(anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }, { importJobId: job.id }))
    await world.startPublishing(job)
    await world.management.deleteProject(1)
    world.clock.advance(10_000)
    for (let turn = 0; turn < 2; turn++) await world.work().workNow(new AbortController().signal)
    assert.equal((await world.management.findImportJob(job.id))?.state, 'discarded')
    assert.deepEqual([(await world.stored()).shelved, world.events.pending.length], [0, 0])
  })

  describe(`imports without a job on ${engine}`, () => {
    const asImport = (name: string, distinctId: string, properties: JsonObject) =>
      anImportedEvent(name, distinctId, day, properties)

    it('belong to a job of their day, which is undone by what they wrote', async t => {
      const world = await importWorld(t, open)
      await world.apply(anEvent('e', 'a', { $set: { kept: 1 } }, { timestampMs: 200 * day }))
      const before = await world.stored()
      await world.apply(
        asImport('e', 'a', { $set: { plan: 'old' } }),
        asImport('e', 'b', { $set: { plan: 'old' } }),
        asImport('$groupidentify', 'a', { $group_type: 'org', $group_key: 'x', $group_set: { tier: 1 } }),
      )
      const { jobs } = await world.management.listImportJobs(1, { limit: 10, offset: 0 })
      assert.deepEqual(
        jobs.map(({ day, state }) => [day, state]),
        [[new Date(1_790_000_000_001).toISOString().slice(0, 10), 'published']],
      )
      assert.deepEqual(
        [...world.events.rows.values()].map(({ importJobId, importPartition }) => [importJobId, importPartition]),
        [[0, undefined], ...Array(3).fill([jobs[0]!.id, 1])],
      )
      await world.discard(jobs[0]!)
      const { persons, groups } = await world.stored()
      assert.deepEqual(groups, [])
      assert.deepEqual(
        persons.map(({ ids, properties }) => [ids, properties]),
        before.persons.map(({ ids, properties }) => [ids, properties]),
      )
      assert.equal(world.events.rows.size, 1)
    })

    it('that come after the undoing belong to another job of the same day, those from before go with it', async t => {
      const world = await importWorld(t, open)
      const now = (plan: string) => ({
        ...asImport('e', 'a', { $set: { plan } }),
        capturedAtMs: world.clock.nowMs(),
      })
      const late = now('late')
      await world.apply(now('old'))
      const [first] = (await world.management.listImportJobs(1, { limit: 10, offset: 0 })).jobs
      await world.discard(first!)
      await world.apply(late)
      assert.deepEqual([(await world.stored()).persons, world.events.rows.size], [[], 0])
      await world.apply(now('newer'))
      assert.equal((await world.management.listImportJobs(1, { limit: 10, offset: 0 })).count, 2)
      assert.match((await personWith(world, 'a'))!.properties, /newer/)
    })
  })

  describe(`two jobs with the same events on ${engine}`, () => {
    it('count them once, and keep them when one is discarded', async t => {
      const world = await importWorld(t, open)
      const [first, second] = [await world.createJob(), await world.createJob()]
      const event = anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }, { importJobId: first.id })
      await world.apply(event)
      await world.apply({ ...event, importJobId: second.id })
      await world.publish(first)
      await world.publish(second)
      assert.equal(world.events.rows.size, 1)
      await world.discard(first)
      assert.equal(world.events.rows.size, 1)
      assert.equal((await personWith(world, 'a'))?.ids, 'a')
      await world.discard(second)
      assert.equal(world.events.rows.size, 0)
    })

    it('forget the time of a generated link with the job that gave it', async t => {
      const world = await importWorld(t, open)
      const [first, second] = [await world.createJob(), await world.createJob()]
      const uuid = '5b0fb7a1-0000-5000-8000-000000000001'
      const link = (importJobId: number, timestampMs: number) =>
        anImportedEvent('$identify', 'user', timestampMs, { $anon_distinct_id: 'device' }, { importJobId, uuid })
      await world.apply(link(first.id, 9 * day))
      await world.discard(first)
      await world.apply(link(second.id, 2 * day))
      assert.deepEqual(
        world.events.pending.map(({ timestampMs }) => timestampMs),
        [2 * day],
      )
    })

    it('give a generated link the time that the first of them had', async t => {
      const world = await importWorld(t, open)
      const [first, second] = [await world.createJob(), await world.createJob()]
      const link = (importJobId: number, timestampMs: number) =>
        anImportedEvent(
          '$identify',
          'user',
          timestampMs,
          { $anon_distinct_id: 'device' },
          {
            importJobId,
            uuid: '5b0fb7a1-0000-5000-8000-000000000001',
          },
        )
      await world.apply(link(first.id, 9 * day))
      await world.apply(link(second.id, 2 * day))
      await world.publish(first)
      await world.publish(second)
      assert.deepEqual(
        [...world.events.rows.values()].map(({ timestampMs }) => timestampMs),
        [9 * day],
      )
    })
  })
}

/** Whether no other id whose person was one with this id's has written the key. `name`: id and key. */
function isLastOfPerson(name: string, acts: readonly Act[]): boolean {
  const [, key] = name.split(' ') as [string, string]
  return acts
    .filter(act => Object.hasOwn((act.properties.$set ?? {}) as JsonObject, key))
    .every(act => `${act.id} ${key}` === name)
}

function isKept({ name, properties }: Act): boolean {
  return !(name === '$identify' && properties.$process_person_profile === false)
}

function isAboutUndoing(reason: string): boolean {
  return reason.startsWith('undo_left:')
}

async function personWith(world: ImportWorld, distinctId: string) {
  return (await world.stored()).persons.find(({ ids }) => ids.split(' ').includes(distinctId))
}

/** Without what names the job, and without the times that only pages move. */
async function withoutMarks(world: ImportWorld) {
  const { persons, groups } = await world.stored()
  return {
    persons: persons.map(({ uuid, properties, created_at, is_identified, ids }) => ({
      ...{ uuid, created_at, is_identified, ids },
      properties: sorted(properties),
    })),
    groups: (groups as { group_properties: string; created_at: number; group_key: string }[]).map(
      ({ group_properties, created_at, group_key }) => ({
        created_at,
        group_key,
        properties: sorted(group_properties),
      }),
    ),
  }
}

function sorted(json: string): [string, unknown][] {
  return Object.entries(JSON.parse(json) as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1))
}

/** A row of an id with a person has that person, whatever merges and undoings lie in between. */
async function assertRowsHaveTheirPersons(world: ImportWorld): Promise<void> {
  const persons = world.personOfRows()
  const byId = new Map(
    (await world.stored()).persons.flatMap(({ uuid, ids }) => ids.split(' ').map(each => [each, uuid])),
  )
  for (const row of world.events.rows.values()) {
    const person = byId.get(row.distinctId)
    if (person !== undefined) assert.equal(persons.get(row.uuid), person, `${row.event} of ${row.distinctId}`)
  }
}

/** Every third write fails, before or after it is made, as if the worker had been killed there. */
async function finishWithCrashes(world: ImportWorld, jobId: number, state: string): Promise<void> {
  let writes = 0
  const failing =
    <Args extends unknown[], Result>(write: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const turn = ++writes % 6
      if (turn === 2) throw new PortError('state', 'unavailable')
      const result = await write(...args)
      if (turn === 5) throw new PortError('state', 'unavailable')
      return result
    }
  const { chunks, management, events } = world
  const over: Partial<ImportWorkDeps> = {
    state: { ...chunks, commitChunk: failing(chunks.commitChunk) },
    jobs: {
      ...management,
      updateImportJob: failing(management.updateImportJob),
      clearShelf: failing(management.clearShelf),
    },
    events: {
      insert: failing(events.insert.bind(events)),
      publishJob: failing(events.publishJob.bind(events)),
      discardJob: failing(events.discardJob.bind(events)),
      discardDay: failing(events.discardDay.bind(events)),
      findOverrides: events.findOverrides.bind(events),
      findUsedIds: events.findUsedIds.bind(events),
      hasRowsOfGroupType: events.hasRowsOfGroupType.bind(events),
    },
  }
  world.clock.advance(10_000)
  for (let attempt = 0; (await management.findImportJob(jobId))?.state !== state; attempt++) {
    assert.ok(attempt < 500, 'it never ends')
    try {
      await world.work(over).workNow(new AbortController().signal)
    } catch (cause) {
      assert.ok(cause instanceof PortError)
    }
  }
}
