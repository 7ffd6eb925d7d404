import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getHeapSpaceStatistics } from 'node:v8'
import { releaseHeapMemory, releaseMemoryWhenIdle } from '#telemetry/release-memory.ts'
import { eventually } from '../support/eventually.ts'

const MiB = 1024 * 1024

function newSpaceBytes(): number {
  return getHeapSpaceStatistics().find(space => space.space_name === 'new_space')!.physical_space_size
}

/** Allocates objects that live long enough for the new space to grow; V8 may shrink it again at any time. */
function growNewSpace(): void {
  const kept: unknown[][] = []
  for (let index = 0; index < 100_000_000 && newSpaceBytes() < 8 * MiB; ) {
    for (const end = index + 100_000; index < end; index++) {
      kept[index % 200_000] = [index, {}]
    }
  }
  assert.ok(newSpaceBytes() >= 8 * MiB, `${newSpaceBytes()} bytes`)
}

function useThread(ms: number): void {
  const { user, system } = process.threadCpuUsage()
  let used = 0
  while (used < ms * 1_000) {
    const now = process.threadCpuUsage()
    used = now.user + now.system - user - system
  }
}

test('returning memory to the system shrinks V8’s new space', () => {
  growNewSpace()
  releaseHeapMemory()
  assert.ok(newSpaceBytes() < 4 * MiB, `${newSpaceBytes()} bytes`)
})

test('memory is returned once after each busy period', async () => {
  let given = 0
  // The clock of the thread moves in ticks of up to 4 ms; a single tick must not count as busy.
  releaseMemoryWhenIdle(200, () => given++)
  for (let round = 1; round <= 2; round++) {
    useThread(150)
    assert.equal(given, round - 1)
    await eventually(() => given > round - 1)
    assert.equal(given, round)
  }
})
