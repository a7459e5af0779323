// Sorts a table by the column whose heading is clicked. The page is complete without it.
for(const table of document.querySelectorAll('table')){const body=table.tBodies[0];if(!body||body.rows.length<2)continue;
[...table.tHead.rows[0].cells].forEach((cell,at)=>{const button=document.createElement('button');button.type='button';
button.append(...cell.childNodes);if(!button.textContent)return;cell.append(button);button.onclick=()=>{
const down=cell.getAttribute('aria-sort')==='descending';for(const other of table.tHead.rows[0].cells)other.removeAttribute('aria-sort');
cell.setAttribute('aria-sort',down?'ascending':'descending');const key=row=>{const item=row.cells[at];
return item.dataset.v!==undefined?Number(item.dataset.v):item.textContent};
const order=(a,b)=>typeof a==='number'&&typeof b==='number'?a-b:String(a).localeCompare(String(b));
body.append(...[...body.rows].sort((a,b)=>order(key(a),key(b))*(down?1:-1)))}})}
