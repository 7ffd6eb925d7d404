import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { compileProjectInSteps } from '#core/flags/evaluation/compile-project.ts'
import { aNewFlag, aProject, emptyDefinitions } from '../../../tests/support/values.ts'
import { runInSlices } from './run-in-slices.ts'

describe('runWorkCommand in slices', () => {
  it('is paused between slow steps for the event loop, and returns its result at the end', async t => {
    let nowMs = 1_000
    t.mock.method(performance, 'now', () => nowMs)
    let turns = 0
    let isOver = false
    const turn = () => {
      turns++
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    function* steps(): Generator<undefined, string> {
      for (let count = 0; count < 5; count++) {
        nowMs += 12
        yield
      }
      return 'done'
    }
    assert.equal(await runInSlices(steps()), 'done')
    isOver = true
    assert.ok(turns >= 4, `${turns} turns`)
  })

  it('takes one step for each flag of a project', () => {
    const flags = Array.from({ length: 20 }, (_, index) => ({
      ...aNewFlag({ key: `f${index}` }),
      ...{ id: index + 1, version: 1, deleted: false, hasExperiment: false, createdBy: null },
      ...{ createdAtMs: 0, updatedAtMs: 0, conditionsSinceMs: 0 },
    }))
    const steps = compileProjectInSteps({ ...emptyDefinitions(aProject(), 1), flags })
    let count = 0
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) count++
    assert.equal(count, 20)
    assert.equal(step.value.order.length, 20)
  })
})
