import assert from 'node:assert/strict'
import { it } from 'node:test'
import { nothingFound } from './checked-load.ts'
import { jumpClock } from './clock-jumps.ts'

it("events, usage days, uuids and positions stay correct while the host's clock jumps back and forth", async () => {
  assert.deepEqual(await jumpClock(1), nothingFound)
})
