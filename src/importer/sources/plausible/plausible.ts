// Plausible: its export has only sums by day. By default each row becomes one event that is marked as a sum and has no
// person; on request, rows of pages become as many page views as they count. Source: docs/wire/import.md §1.7.

import { ownValue } from '#core/json.ts'
import { idText } from '#importer/records/distinct-ids.ts'
import { ImportConfigError, type ImportSource, type SourceRecord } from '#importer/records/import-source.ts'
import { RecordReject } from '#importer/records/imported-event.ts'
import { SourceConfig } from '#importer/records/source-config.ts'
import { convertToSum, readDayStart } from './plausible-sums.ts'
import { findPlausibleTable } from './plausible-tables.ts'
import { synthesizeViews } from './plausible-views.ts'

/** Exists for each date that has rows of pages. */
const pagesFact = 'plausible_pages'
const pages = 'imported_pages'
const totals = 'imported_visitors'

export const plausible: ImportSource = {
  name: 'plausible',
  summary: 'the CSV files of the export of Plausible: sums by day, or page views made up to equal them',
  prepare(config, context) {
    const keys = new SourceConfig('plausible', config)
    const site = keys.text('site')
    const mode = keys.choice('mode', ['aggregate', 'synthesize'])
    const zone = keys.zone()
    const visitors = keys.wholeNumber('visitors')
    const configuredTable = keys.text('table')
    keys.end()
    if (site === null)
      throw new ImportConfigError('site in the configuration of plausible must be set, such as "blog.example.com"')
    if (visitors !== null && visitors < 1)
      throw new ImportConfigError('visitors in the configuration of plausible must be at least 1')
    const settings = { site, zone, visitors, window: context }
    const tableOf = (record: SourceRecord) => configuredTable ?? findPlausibleTable(record)
    const dateOf = ({ value }: SourceRecord) => idText(ownValue(value, 'date')) ?? ''
    // Only two tables count page views as such, and both count the same ones. The other tables break the same views down by
    // source, device and so on, so they stay sums; otherwise each view would be synthesized nine times.
    const countsViews = (record: SourceRecord, table: string) =>
      table === pages || (table === totals && context.findFact(pagesFact, dateOf(record)) === null)
    return {
      convert(record) {
        const table = tableOf(record)
        if (table === null)
          throw new RecordReject('event_missing', 'table', 'neither the file nor the row identifies its table')
        const views =
          mode === 'synthesize' && countsViews(record, table) ? synthesizeViews(table, record.value, settings) : null
        return views ?? convertToSum(table, record.value, settings)
      },
      factsOf: record =>
        mode === 'synthesize' && tableOf(record) === pages
          ? [{ kind: pagesFact, key: dateOf(record), value: 'known' }]
          : [],
      // The first view of a row is made up at the start of its day too.
      timeOf: ({ value }) => readDayStart(value, settings),
    }
  },
}
