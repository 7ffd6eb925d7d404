declare module '*.css' {
  const classes: Readonly<Record<string, string>>
  export default classes
}
declare module 'virtual:icons' {
  const address: string
  export default address
}
/** Whether the build has the workbench: for development and tests. */
declare const WITH_WORKBENCH: boolean
