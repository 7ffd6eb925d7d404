// Filters of flags and cohorts as they come over the private API.

export const pro = { key: 'plan', type: 'person', value: 'pro', operator: 'exact' }
export const treeOf = (...values: readonly unknown[]) => ({ properties: { type: 'AND', values } })
export const cohortFilter = (id: unknown) => ({ key: 'id', type: 'cohort', value: id, operator: 'in' })
export const flagFilter = (id: number) => ({
  key: String(id),
  type: 'flag',
  value: true,
  operator: 'flag_evaluates_to',
})
export const flagOn = (...properties: readonly unknown[]) => ({ groups: [{ properties, rollout_percentage: 100 }] })
