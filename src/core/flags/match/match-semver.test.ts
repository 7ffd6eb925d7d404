import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { compileSemver, parseSemver, type SemverOperator } from './match-semver.ts'

/** Whether a version passes the filter; null when the filter can never match. */
function holds(operator: SemverOperator, filter: string, version: string): boolean | null {
  return compileSemver(operator, filter)?.(version) ?? null
}

describe('versions', () => {
  it('are normalised before they are compared', () => {
    assert.equal(holds('semver_eq', 'v1.02', '1.2.0'), true)
    assert.equal(holds('semver_eq', '1.2.3', ' 1.2.3 '), true)
    assert.equal(holds('semver_eq', '1.2.3', 'vv1.2.3'), false)
    for (const text of [
      '',
      '1.2.3.4',
      'abc',
      '1..2',
      '1.2.x',
      '99999999999999999999',
      '1.2.3-',
      '1.2.3-01',
      `1.0.0-${'1.'.repeat(600)}1`,
    ]) {
      assert.equal(parseSemver(text), null, text)
    }
  })

  it('order pre-releases before their release, build metadata last', () => {
    const ascending = [
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0-beta.2',
      '1.0.0-beta.11',
      '1.0.0',
      '1.0.0+b',
    ]
    for (let index = 1; index < ascending.length; index++) {
      assert.equal(holds('semver_lt', ascending[index]!, ascending[index - 1]!), true, ascending[index]!)
      assert.equal(holds('semver_gt', ascending[index - 1]!, ascending[index]!), true, ascending[index]!)
    }
    assert.equal(holds('semver_eq', '1.0.0', '1.0.0+b'), false)
    assert.equal(holds('semver_eq', '1.0.0+1', '1.0.0+01'), false)
    assert.equal(holds('semver_neq', '1.0.0', '1.0.1'), true)
    assert.equal(holds('semver_gte', '1.0.0', '1.0.0'), true)
    assert.equal(holds('semver_lte', '1.0.0', '1.0.1'), false)
  })

  it('match tilde and caret ranges, pre-releases only if the filter has one of the same numbers', () => {
    assert.equal(holds('semver_tilde', '1.2.3', '1.2.9'), true)
    assert.equal(holds('semver_tilde', '1.2.3', '1.3.0'), false)
    assert.equal(holds('semver_caret', '1.2.3', '1.9.0'), true)
    assert.equal(holds('semver_caret', '0.0.3', '0.0.4'), false)
    assert.equal(holds('semver_caret', '1.2.3', '2.0.0-rc.1'), false)
    assert.equal(holds('semver_caret', '1.2.3-beta', '1.2.3-rc'), true)
    assert.equal(holds('semver_caret', '1.2.3-beta', '1.2.4-rc'), false)
  })

  it('match wildcards, which without a star are carets', () => {
    assert.equal(holds('semver_wildcard', '1.2.*', '1.2.77'), true)
    assert.equal(holds('semver_wildcard', '1.*', '1.9.0'), true)
    assert.equal(holds('semver_wildcard', '*', '7.0.0'), true)
    assert.equal(holds('semver_wildcard', '1.2.*', '1.3.0'), false)
    assert.equal(holds('semver_wildcard', '1.2', '1.9.0'), true)
    assert.equal(holds('semver_wildcard', '0', '0.9.0'), true)
    for (const filter of ['>=1.2', '~1.2', '^1.2', '=1.2', '1.2, 1.3', '*.1']) {
      assert.equal(holds('semver_wildcard', filter, '1.2.0'), null, filter)
    }
  })
})
