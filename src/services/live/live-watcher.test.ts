import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { aView, everything, someEvents, sum } from '../../../tests/support/live-view.ts'
import { aCapturedEvent } from '../../../tests/support/values.ts'

describe('the live view', () => {
  it('shows a limited number of events per second and counts the rest, so that both add up to all matching events', async () => {
    const { watch, accept, time } = aView()
    const [all, some] = [await watch(), await watch({ filter: { ...everything, events: new Set(['rare']) } })]
    const perSecond = 3_000
    for (let n = 0; n < 30; n++) {
      await accept([...someEvents(perSecond / 10), aCapturedEvent(1, { name: 'rare' })])
      await time.move(100)
    }
    await time.move(1_000)
    assert.deepEqual([some.of('event').length, some.of('skipped').length], [30, 0])
    const shown = all.of('event').length
    assert.ok(shown >= 600 && shown <= 1_000, `${shown} shown in 3 s`)
    assert.equal(shown + sum(all.of('skipped')), 30 * (perSecond / 10 + 1))
    assert.ok(all.of('skipped').length <= 5, 'sent once a second')
  })

  it('shows nothing more to a slow watcher until it has read the buffer, and counts the events in the meantime', async () => {
    const { watch, accept, time } = aView()
    const [slow, quick] = [await watch({}, false), await watch()]
    const large = { setJson: 'x'.repeat(60 * 1024) }
    for (let n = 0; n < 4; n++) {
      await accept(someEvents(5, large))
      await time.move(1_000)
    }
    assert.equal(quick.of('event').length, 20)
    const before = slow.of('event').length
    assert.ok(before <= 6, `${before} waited`)
    for (let n = 0; n < 10; n++) slow.take()
    await accept(someEvents(1, large))
    await time.move(1_500)
    assert.equal(slow.of('event').length, before + 1)
    assert.deepEqual(slow.of('skipped'), [['skipped', { rate: 0, slow: 20 - before, too_large: 0 }]])
    slow.leave()
  })

  it('disconnects a watcher, with the reason, only if it reads nothing for twenty seconds while events wait for it', async () => {
    const { watch, accept, time, dropped, open } = aView()
    const [stuck, idle] = [await watch({}, false), await watch()]
    await accept([aCapturedEvent(1)])
    await time.move(18_000)
    assert.equal(await dropped(), 0)
    await time.move(5_000)
    assert.deepEqual(stuck.heard.at(-1), ['end', 'too_slow'])
    assert.deepEqual([await dropped(), await open()], [1, 1])
    assert.equal(idle.of('end').length, 0)
  })

  it('sends a heartbeat when there is nothing to show', async () => {
    const { watch, accept, time } = aView()
    const { of } = await watch()
    await time.move(46_000)
    assert.equal(of('beat').length, 3)
    for (let n = 0; n < 20; n++) {
      await accept([aCapturedEvent(n)])
      await time.move(1_000)
    }
    assert.equal(of('beat').length, 3)
  })

  it('ends watchers that lost their permission, at once if a change is notified, and otherwise within seconds', async () => {
    const { watch, live, time } = aView()
    let asked = 0
    let reason: 'access_ended' | 'project_deleted' | null = null
    const findEndReason = async () => {
      asked++
      return reason
    }
    const [first, second, other] = [
      await watch({ findEndReason }),
      await watch({ findEndReason }),
      await watch({ accessKey: 'o' }),
    ]
    live.recheck()
    await time.move(10)
    assert.equal(asked, 1, 'one check for all watchers with the same key')
    reason = 'access_ended'
    live.recheck()
    await time.move(10)
    assert.deepEqual(
      [first.heard.at(-1), second.heard.at(-1)],
      [
        ['end', 'access_ended'],
        ['end', 'access_ended'],
      ],
    )
    const third = await watch({ projectId: 2, findEndReason: async () => 'project_deleted' })
    await time.move(6_000)
    assert.deepEqual(third.heard.at(-1), ['end', 'project_deleted'])
    assert.equal(other.of('end').length, 0)
  })

  it('lets a watcher stay for half a minute while its permission cannot be checked', async () => {
    const { watch, time } = aView()
    const { heard, of } = await watch({
      findEndReason: () => Promise.reject(new PortError('state', 'unavailable', new Error('down'))),
    })
    await time.move(25_000)
    assert.equal(of('end').length, 0)
    await time.move(12_000)
    assert.deepEqual(heard.at(-1), ['end', 'access_ended'])
  })

  it('limits watchers in total and per project, and accepts another one when one leaves', async () => {
    const { enter } = aView({ watchersMax: 3, watchersPerProjectMax: 2 })
    const first = await enter()
    assert.ok(first.ok && (await enter()).ok)
    assert.deepEqual(await enter(), { ok: false, error: 'project_full' })
    assert.ok((await enter({ projectId: 2 })).ok)
    assert.deepEqual(await enter({ projectId: 3 }), { ok: false, error: 'full' })
    first.value.leave()
    assert.ok((await enter()).ok)
  })
})
