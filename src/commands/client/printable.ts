export { printable, printableName } from '#core/printable.ts'
