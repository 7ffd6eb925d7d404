import assert from 'node:assert/strict'
import { it } from 'node:test'
import { formatBytes } from './format-bytes.ts'

it('a readable size uses the largest unit that gives at least 1, to one decimal', () => {
  for (const [bytes, text] of [
    [0, '0 bytes'],
    [1_023, '1023 bytes'],
    [1_024, '1.0 KiB'],
    [1_073_741_823, '1.0 GiB'],
    [73_387_077_632, '68.3 GiB'],
    [99_999 * 2 ** 40, '99999.0 TiB'],
  ] as const)
    assert.equal(formatBytes(bytes), text)
})
