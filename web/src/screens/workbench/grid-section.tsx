import { useCallback, useState } from 'react'
import { Badge } from '../../components/controls/badge.tsx'
import { Chip } from '../../components/controls/chip.tsx'
import { IconCell } from '../../components/controls/icon-cell.tsx'
import { SwitchCell } from '../../components/controls/switch.tsx'
import type { GridColumn, GridSort } from '../../components/grid/columns.ts'
import { DataGrid, rowLinkProps } from '../../components/grid/data-grid.tsx'
import { noSelection } from '../../components/grid/selection.ts'
import { MenuAt } from '../../components/overlays/menu.tsx'
import { EmptyState } from '../../components/states/states.tsx'
import { Count } from '../../components/text/count.tsx'
import { Outside } from '../../components/text/outside.tsx'
import { formatOutsideText } from '../../components/text/outside-text.ts'
import { samples } from './samples.ts'
import { Section } from './section.tsx'
import css from './workbench.module.css'

interface SampleFlag {
  readonly id: string
  readonly key: string
  readonly name: string
  readonly isOn: boolean
  readonly callCount: number
}

const texts = ['New checkout', samples.rightToLeft, samples.hebrew, '', samples.long, samples.override, samples.markup]
const initialRows: readonly SampleFlag[] = Array.from({ length: 10_000 }, (_, index) => ({
  id: String(index + 1),
  key: index === 4 ? samples.long : index === 2 ? samples.rightToLeft : `new-checkout-${index + 1}`,
  name: texts[index % texts.length]!,
  isOn: index % 3 !== 0,
  callCount: (index * 7_919) % 100_000,
}))
/** As of rows that are not loaded yet. */
const isUnloaded = (index: number) => index === 6 || index === 9_998

export function GridSection() {
  const [rows, setRows] = useState(initialRows)
  const [selection, setSelection] = useState(noSelection)
  const [sort, setSort] = useState<GridSort>({ column: 'key', isDescending: false })
  const [menu, setMenu] = useState<{ anchor: Element; key: string } | null>(null)
  const [columns] = useState(() =>
    createColumns(
      (id, isOn) => setRows(old => old.map(row => (row.id === id ? { ...row, isOn } : row))),
      (key, anchor) => setMenu({ key, anchor }),
    ),
  )
  const rowAt = useCallback((index: number) => (isUnloaded(index) ? undefined : rows[index]), [rows])
  return (
    <Section title="Grid">
      <div className={css.grid}>
        <DataGrid
          label="Flags"
          columns={columns}
          rowCount={rows.length}
          rowAt={rowAt}
          rowKey={row => row.id}
          rowLabel={row => formatOutsideText(row.key)}
          selection={selection}
          onSelectionChange={setSelection}
          sort={sort}
          onSort={column => setSort({ column, isDescending: sort.column === column && !sort.isDescending })}
          isLinked
          onRowMenu={(index, anchor) => setMenu({ anchor, key: rows[index]!.key })}
        />
      </div>
      <MenuAt
        label={menu === null ? 'Flag' : formatOutsideText(menu.key)}
        items={[
          { id: 'edit', label: 'Edit', shortcut: 'e' },
          { id: 'delete', label: 'Delete', icon: 'trash', isDanger: true },
        ]}
        anchor={menu?.anchor ?? null}
        onAction={() => {}}
        onClose={() => setMenu(null)}
      />
      <DataGrid
        label="Flags, dimmed"
        columns={columns}
        rowCount={3}
        rowAt={rowAt}
        rowKey={row => row.id}
        rowLabel={row => row.key}
        isDimmed
      />
      <DataGrid
        label="No flags"
        columns={columns}
        rowCount={0}
        rowAt={rowAt}
        rowKey={row => row.id}
        rowLabel={row => row.key}
        empty={<EmptyState title="No flags yet">Nobody has made one here.</EmptyState>}
      />
    </Section>
  )
}

function createColumns(
  switchFlag: (id: string, isOn: boolean) => void,
  openMenu: (key: string, anchor: Element) => void,
): readonly GridColumn<SampleFlag>[] {
  return [
    {
      id: 'key',
      header: 'Key',
      widthPx: 220,
      isFlexible: true,
      isRowHeader: true,
      isControl: true,
      isSortable: true,
      cell: (row, tabIndex) => (
        <a href={`#flag-${row.id}`} {...rowLinkProps(tabIndex)}>
          <Outside text={row.key} charsMax={60} />
        </a>
      ),
    },
    {
      id: 'on',
      header: 'On',
      widthPx: 64,
      isControl: true,
      narrow: 'start',
      cell: (row, tabIndex) => (
        <SwitchCell
          aria-label={`${formatOutsideText(row.key)} is on`}
          isOn={row.isOn}
          onChange={isOn => switchFlag(row.id, isOn)}
          disabledReason={row.id === '4' ? 'You are a viewer' : null}
          tabIndex={tabIndex}
        />
      ),
    },
    {
      id: 'name',
      header: 'Name',
      widthPx: 220,
      isSortable: true,
      cell: row => <Outside text={row.name} charsMax={60} />,
    },
    {
      id: 'state',
      header: 'State',
      widthPx: 130,
      narrow: 'second',
      cell: row => (row.isOn ? <Badge kind="on">Served</Badge> : <Badge>Off</Badge>),
    },
    { id: 'tags', header: 'Tags', widthPx: 120, narrow: 'hidden', cell: () => <Chip text="checkout" /> },
    {
      id: 'calls',
      header: 'Calls today',
      widthPx: 120,
      isAtEnd: true,
      isSortable: true,
      narrow: 'second',
      cell: row => <Count value={row.callCount} />,
    },
    {
      id: 'menu',
      header: 'Actions',
      isHeaderHidden: true,
      widthPx: 48,
      isControl: true,
      narrow: 'end',
      cell: (row, tabIndex) => (
        <IconCell
          icon="ellipsis"
          label={`More for ${formatOutsideText(row.key)}`}
          aria-haspopup="menu"
          tabIndex={tabIndex}
          onClick={event => openMenu(row.key, event.currentTarget)}
        />
      ),
    },
  ]
}
