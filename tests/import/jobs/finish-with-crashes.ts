// Publishes or discards a job with a worker that crashes repeatedly.

import assert from 'node:assert/strict'
import { PortError } from '#ports/port-error.ts'
import type { ImportWorkDeps } from '#services/imports/job-batch.ts'
import { wrapMethods } from '../../support/with-methods.ts'
import type { ImportWorld } from '../../support/world/import-world.ts'

const writes = [
  ...['commitChunk', 'updateImportJob', 'clearImportJob', 'addRepairReport', 'finishRepair'],
  ...[
    'startDeletingGroupType',
    'deleteGroupsOfType',
    'insert',
    'addKnownProperties',
    'publishJob',
    'discardJob',
    'deleteSharedJobRows',
  ],
]
const reads = [
  ...['findOverrides', 'listJobIds', 'listJobGroups', 'findLinks', 'readHistory', 'hasRowsOfGroupType'],
  ...['loadChunk', 'listStagedItems', 'listNamedGroupTypes', 'findAssignments', 'listImportNotes'],
]

/** Successful calls between two failures, used in rotation. */
const writeGaps = [0, 1, 2, 3, 5, 8]
const readGaps = [7, 19, 31]

/**
 * Every few writes one fails, before or after it takes effect, as if the worker had been killed there; reads fail more
 * rarely.
 * @param first shifts which calls fail.
 */
export function finishWithCrashes(world: ImportWorld, jobId: number, state: string, first: number): Promise<void> {
  return workWithCrashes(world, first, async () => (await world.management.findImportJob(jobId))?.state === state)
}

/** Works with such crashes until this is so. */
export async function workWithCrashes(
  { chunks, management, events, clock, work }: ImportWorld,
  first: number,
  isDone: () => Promise<boolean>,
): Promise<void> {
  const failure = () => new PortError('state', 'unavailable')
  const [isWriteDue, isReadDue] = [createDueCheck(writeGaps, first), createDueCheck(readGaps, first)]
  let failsAfter = first % 2 === 0
  const failing = <Port extends object>(port: Port): Port =>
    wrapMethods(port, async (name, run) => {
      if (reads.includes(name) && isReadDue()) throw failure()
      const fails = writes.includes(name) && isWriteDue()
      if (fails) failsAfter = !failsAfter
      if (fails && !failsAfter) throw failure()
      const result = await run()
      if (fails) throw failure()
      return result
    })
  const over: Partial<ImportWorkDeps> = {
    state: failing(chunks),
    jobs: failing(management),
    events: failing(events),
  }
  clock.advance(10_000)
  for (let attempt = 0; !(await isDone()); attempt++) {
    assert.ok(attempt < 500, 'the work never ends')
    try {
      await work(over).workNow(new AbortController().signal)
    } catch (cause) {
      assert.ok(cause instanceof PortError)
    }
  }
}

function createDueCheck(gaps: readonly number[], first: number): () => boolean {
  let place = first
  let left = gaps[place % gaps.length]!
  return () => {
    if (left-- > 0) return false
    left = gaps[++place % gaps.length]!
    return true
  }
}
