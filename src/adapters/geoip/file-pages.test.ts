import assert from 'node:assert/strict'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { seededRandom } from '../../../tests/support/seeded-random.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { FilePages } from './file-pages.ts'

const pageBytes = 4_096

function aFile(t: Parameters<typeof tempDir>[0], bytes: Uint8Array): string {
  const path = join(tempDir(t), 'some-file')
  writeFileSync(path, bytes)
  return path
}

describe('FilePages', () => {
  it('reads the file’s bytes within and across pages, however few pages it holds in memory', t => {
    const random = seededRandom(20_261_121)
    const content = Buffer.from(Array.from({ length: 10 * pageBytes + 17 }, () => Math.floor(random() * 128)))
    for (const heldPages of [1, 3, 100]) {
      const pages = new FilePages(aFile(t, content), heldPages * pageBytes)
      for (let round = 0; round < 3_000; round++) {
        const size = Math.floor(random() * 7)
        const position = Math.floor(random() * (content.length - size))
        assert.equal(pages.uintAt(position, size), size === 0 ? 0 : content.readUIntBE(position, size))
        assert.equal(pages.byteAt(position), content[position])
        const length = Math.floor(random() * Math.min(2.5 * pageBytes, content.length - position))
        if (round % 50 === 0) {
          assert.equal(pages.textAt(position, length), content.toString('latin1', position, position + length))
          assert.deepEqual(pages.copyOf(position, length), content.subarray(position, position + length))
        }
      }
      pages.close()
    }
  })

  it('reads nothing beyond the end', t => {
    const pages = new FilePages(aFile(t, Buffer.alloc(pageBytes + 2)), pageBytes)
    assert.throws(() => pages.byteAt(pageBytes + 2), RangeError)
    assert.throws(() => pages.uintAt(pageBytes, 3), RangeError)
    assert.throws(() => pages.textAt(pageBytes, 3), RangeError)
    assert.throws(() => pages.copyOf(0, pageBytes + 3), RangeError)
    pages.close()
  })

  it('reports a file that was truncated while open', t => {
    const path = aFile(t, Buffer.alloc(3 * pageBytes, 1))
    const pages = new FilePages(path, pageBytes)
    truncateSync(path, pageBytes)
    assert.throws(() => pages.byteAt(2 * pageBytes), /truncated/)
    assert.equal(pages.byteAt(5), 1)
    pages.close()
  })

  it('refuses a folder', t => {
    assert.throws(() => new FilePages(tempDir(t), pageBytes), /not a file/)
  })
})
