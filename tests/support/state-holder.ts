// A process that holds the write lock of a state file from its start until its standard input ends, as an operator's
// `sqlite3` might.

import { openStateForWriting } from '#adapters/sqlite/open-sqlite.ts'

const database = openStateForWriting(process.argv[2]!, 5_000)
database.exec('BEGIN IMMEDIATE')
process.stdout.write('held\n')
process.stdin.resume().on('end', () => {
  database.exec('ROLLBACK')
  database.close()
})
