/** The events sent to the instance of the baseline folder before it was killed. */
export const baselineEvents = {
  processed: [
    { event: '$set', distinct_id: 'ada', properties: { $set: { plan: 'pro' } }, timestamp: '2026-11-01T10:00:00Z' },
    {
      event: '$feature_flag_called',
      distinct_id: 'ada',
      properties: { $feature_flag: 'for-pros', $feature_flag_response: true, '$feature/for-pros': true },
      timestamp: '2026-11-01T10:00:01Z',
    },
  ],
  imported: [{ event: 'imported', distinct_id: 'ada', timestamp: '2025-01-01T00:00:00Z' }],
  /** Sent to an import job that is still pending. */
  ofJob: [
    {
      uuid: '5a5a5a5a-0000-4000-8000-000000000001',
      event: 'signed up',
      properties: { distinct_id: 'grace', $set: { name: 'Grace' } },
      timestamp: '2024-01-02T00:00:00Z',
    },
  ],
  /** Refused for an invalid uuid. */
  rejected: { event: 'refused', distinct_id: 'ada', uuid: 'x' },
  /** Accepted, but not processed before the instance was killed. */
  waiting: [
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
  waitingImport: [{ event: 'imported late', distinct_id: 'ada', timestamp: '2025-01-02T00:00:00Z' }],
}
