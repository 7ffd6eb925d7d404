import assert from 'node:assert/strict'
import { it } from 'node:test'
import { planFlagImport } from './plan-import.ts'

it('an import of 10,001 cohorts that refer to each other in a chain is refused with a message', async () => {
  const valuesOf = (index: number) =>
    index === 10_000
      ? [{ key: 'plan', type: 'person', operator: 'exact', value: 'pro' }]
      : [{ key: 'id', type: 'cohort', value: `c${index + 1}` }]
  const cohorts = Array.from({ length: 10_001 }, (_, index) => {
    const filters = { properties: { type: 'OR', values: valuesOf(index) } }
    return { name: `c${index}`, is_static: false, filters }
  })
  const none = { flags: [], cohorts: [], groupTypes: [] }
  const { problems } = await planFlagImport({ groupTypes: [], cohorts, flags: [] }, none)
  assert.deepEqual(problems, ['cohort "c0": more than 500 cohorts and flags depend on each other in a chain.'])
})
