/** The events that were accepted but not processed when the instance was killed. */
export const waitingEvents = {
  live: [
    {
      event: '$identify',
      distinct_id: 'ada',
      properties: { $anon_distinct_id: 'anon-1', $set: { age: 36 } },
      timestamp: '2026-11-01T10:00:02Z',
    },
    {
      event: '$groupidentify',
      distinct_id: 'ada',
      properties: { $group_type: 'company', $group_key: 'acme', $group_set: { size: 3 } },
      timestamp: '2026-11-01T10:00:03Z',
    },
    { event: 'waited', distinct_id: 'anon-1', properties: { exact: 0.1 }, timestamp: '2026-11-01T10:00:04Z' },
  ],
  historical: [{ event: 'imported late', distinct_id: 'ada', timestamp: '2025-01-02T00:00:00Z' }],
}
