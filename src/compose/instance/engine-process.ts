// Runs the embedded event store in a separate process, which loads nothing else.

export { runEngineProcess } from '#adapters/clickhouse-embedded/engine-process.ts'
