// Events that arrive while a job is undone, before and after each step that the undo takes.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import type { ImportWorkDeps } from '#services/imports/job-batch.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { wrapMethods } from '../../support/with-methods.ts'
import type { ImportWorld } from '../../support/world/import-world.ts'
import { shownBy } from './never-sent.ts'
import { day, inWorlds } from './random-acts.ts'

type NewWorld = () => Promise<ImportWorld>

export function undoRacesContract(engine: string, open: OpenSqlState): void {
  const before = ['user', 'device', 'third'].map(id =>
    anEvent('e', id, { $set: { [id]: 1 } }, { timestampMs: 200 * day }),
  )
  const ofJob = (name: string, id: string, properties: JsonObject) => anImportedEvent(name, id, day, properties)
  const imported = [
    ofJob('e', 'new', { $set: { k: 1 } }),
    ofJob('$identify', 'user', { $anon_distinct_id: 'device', $set: { k: 1 } }),
    ofJob('$groupidentify', 'user', { $group_type: 'org', $group_key: 'x', $group_set: { tier: 1 } }),
  ]
  const late = (name: string, id: string, properties: JsonObject) =>
    anEvent(name, id, properties, { timestampMs: 201 * day })
  const arriving: Readonly<Record<string, CapturedEvent>> = {
    'an event that uses a person of the job': late('e', 'new', {}),
    'an event that writes to a person of the job': late('e', 'new', { $set: { k: 2 } }),
    'an event that writes to a merged person': late('e', 'device', { $set: { d: 2 } }),
    'a link of a merged person with another': late('$identify', 'third', { $anon_distinct_id: 'device' }),
    'the link that the job made': late('$merge_dangerously', 'user', { alias: 'device' }),
    'a link of a person of the job': late('$identify', 'third', { $anon_distinct_id: 'new' }),
    'an event that describes a group of the job': late('$groupidentify', 'third', {
      ...{ $group_type: 'org', $group_key: 'x', $group_set: { tier: 2 } },
    }),
  }

  const publishedJob = async (world: ImportWorld) => {
    const job = await world.createJob()
    await world.apply(...before)
    await world.apply(...imported.map(event => ({ ...event, importJobId: job.id })))
    await world.publish(job)
    await world.startDiscarding(job)
    world.clock.advance(10_000)
    return job
  }
  const assertUndone = async (newWorld: NewWorld, world: ImportWorld, jobId: number, event: CapturedEvent) => {
    assert.equal((await world.management.findImportJob(jobId))?.state, 'discarded')
    const notes = (await world.management.listImportNotes(jobId)).map(({ reason }) => reason)
    assert.deepEqual(notes, event.name === '$groupidentify' ? ['undo_left:group_type_is_used'] : [])
    const model = await newWorld()
    await model.createJob()
    await model.apply(...before)
    await model.apply(event)
    assert.deepEqual(await shownBy(world), await shownBy(model))
  }

  for (const [what, event] of Object.entries(arriving))
    describe(`${what} while an import job on ${engine} is undone`, () => {
      for (const method of [
        ...['listJobIds', 'findLinks', 'readHistory', 'loadChunk', 'findAssignments', 'insert', 'commitChunk'],
      ])
        it(
          `is kept when it arrives after ${method}`,
          inWorlds(open, async newWorld => {
            const world = await newWorld()
            const job = await publishedJob(world)
            let isThere = false
            const over = afterCall(world, method, async () => {
              if (!isThere) await world.apply(event)
              isThere = true
            })
            await world.work(over).workNow(new AbortController().signal)
            assert.ok(isThere)
            await assertUndone(newWorld, world, job.id, event)
          }),
        )

      for (const hook of ['afterLoad', 'afterInsert'] as const)
        for (const method of ['readHistory', 'commitChunk'])
          it(
            `is kept when the undo comes to ${method} in its processing, ${hook}`,
            inWorlds(open, async newWorld => {
              const world = await newWorld()
              const job = await publishedJob(world)
              const reached = Promise.withResolvers<void>()
              const undo = () =>
                world
                  .work(afterCall(world, method, async () => reached.resolve()))
                  .workNow(new AbortController().signal)
              let ended: Promise<unknown> | undefined
              const start = async () => {
                ended = undo()
                await Promise.race([reached.promise, ended])
              }
              await world.applyWith({ [hook]: start }, event)
              await ended
              await assertUndone(newWorld, world, job.id, event)
            }),
          )
    })
}

/** Stores whose method of this name calls `act` before it returns. */
function afterCall(world: ImportWorld, name: string, act: () => Promise<void>): Partial<ImportWorkDeps> {
  const hooked = <Port extends object>(port: Port): Port =>
    wrapMethods(port, async (each, run) => {
      const result = await run()
      if (each === name) await act()
      return result
    })
  return { state: hooked(world.chunks), jobs: hooked(world.management), events: hooked(world.events) }
}
