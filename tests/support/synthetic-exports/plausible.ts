// Plausible's export: a zip of CSVs with sums by day. Source: docs/wire/import.md §1.7.

import { csvLine, type ExportFile, type ZipLine, zipFile } from './export-files.ts'
import { type Happening, wallTime } from './happenings.ts'
import type { SyntheticSource } from './synthetic-source.ts'

const heads = {
  'imported_pages_20240301_20240330.csv': 'date,hostname,page,visitors,pageviews,exits,time_on_page',
  'imported_browsers_20240301_20240330.csv': 'date,browser,browser_version,visitors,visits,visit_duration,bounces',
  'imported_sources_20240301_20240330.csv': 'date,source,utm_source,visitors,visits,visit_duration,bounces',
} as const
type Entry = keyof typeof heads

export const plausible: SyntheticSource = {
  name: 'plausible',
  config: { site: 'blog.example.test', mode: 'synthesize', source_timezone: 'Europe/Berlin' },
  open: ({ folder, part }) => {
    const zip: ExportFile<ZipLine> = zipFile(`${folder}/plausible-${part}.zip`, { heads })
    return {
      add(each) {
        const entry = entryOf(each)
        zip.add({ entry, line: csvLine(each.fault === 'broken' ? null : rowOf(entry, each)) })
      },
      end: () => zip.end(),
    }
  },
}

function entryOf({ kind }: Happening): Entry {
  if (kind === 'click') return 'imported_browsers_20240301_20240330.csv'
  return kind === 'identify' ? 'imported_sources_20240301_20240330.csv' : 'imported_pages_20240301_20240330.csv'
}

function rowOf(entry: Entry, { index, timeUs, page, amount, fault }: Happening): (string | number | null)[] {
  const date = fault === 'bad time' ? 'soon' : wallTime(timeUs).slice(0, 10)
  const visitors = 1 + (index % 2)
  // A different name for each row: Plausible has one row per day and page.
  if (entry.startsWith('imported_pages'))
    return [date, 'blog.example.test', `${page}/${index}`, visitors, visitors, 1, 60]
  const name = entry.startsWith('imported_browsers') ? 'Firefox' : 'Свои'
  return [date, name, String(index), visitors, visitors, Math.floor(amount), 0]
}
