import assert from 'node:assert/strict'
import { it } from 'node:test'
import { compileSemver, parseSemver } from './match-semver.ts'

// Most of what versions match is in the flag vectors, which `tests/conformance` runs.
it('a version has at most 1,000 characters, and 1.0.1 is not lower than or equal to 1.0.0', () => {
  assert.equal(parseSemver(`1.0.0-${'1.'.repeat(400)}1`)?.prerelease.length, 401)
  assert.equal(parseSemver(`1.0.0-${'1.'.repeat(600)}1`), null)
  assert.equal(compileSemver('semver_lte', '1.0.0')?.('1.0.1'), false)
})
