import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JobStopped } from '#importer/job/job-paused.ts'
import { diskReserve } from './disk-reserve.ts'

const mebibyte = 2 ** 20

/** @param sizes of a disk, in MiB. */
function findSpaceProblemOn(
  sizes: { free: number; total: number },
  freeBytesMin: number,
  nextBytes = 0,
): string | null {
  const look = () => ({ freeBytes: sizes.free * mebibyte, totalBytes: sizes.total * mebibyte })
  return diskReserve('/job', freeBytesMin, look)(nextBytes)
}

describe('the reserve on the disk of an import', () => {
  it('is a quarter more than the free disk below which capture stops', () => {
    assert.equal(findSpaceProblemOn({ free: 125, total: 1_000 }, 100 * mebibyte), null)
    assert.match(
      findSpaceProblemOn({ free: 124, total: 1_000 }, 100 * mebibyte)!,
      /^WARNING: the disk of \/job is full except for a reserve: 124\.0 MiB are free; 125\.0 MiB .* stay free .*free disk space, and the command continues.* lower PENNON_MIN_FREE_BYTES/,
    )
  })

  it('must also remain free beside a file of known size', () => {
    assert.equal(findSpaceProblemOn({ free: 200, total: 1_000 }, 100 * mebibyte, 75 * mebibyte), null)
    const message = /200\.0 MiB are free, and incoming files need 76\.0 MiB; 125\.0 MiB/
    assert.match(findSpaceProblemOn({ free: 200, total: 1_000 }, 100 * mebibyte, 76 * mebibyte)!, message)
  })

  it('stops an import on a disk that is smaller than the reserve, with a remedy', () => {
    assert.throws(
      () => findSpaceProblemOn({ free: 90, total: 124 }, 100 * mebibyte),
      (error: unknown) =>
        error instanceof JobStopped &&
        /has 124\.0 MiB in total.*125\.0 MiB.*lower PENNON_MIN_FREE_BYTES/.test(error.message),
    )
  })

  it('is nothing if PENNON_MIN_FREE_BYTES is 0', () => {
    assert.equal(findSpaceProblemOn({ free: 0, total: 1 }, 0), null)
  })
})
